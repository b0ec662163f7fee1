from collections.abc import Iterator
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from oku_workers.timing.coordinator_clock import (
    DRIFT_PPM,
    LARGEST_SLEW_NS,
    SLEW_PPM,
    ClockEstimate,
    ClockSample,
    ClockSamples,
    SlewedOffset,
)

MS, S = 1_000_000, 1_000_000_000
OFFSETS = st.integers(-(10**18), 10**18)


class Exchange(NamedTuple):
    """A question and its answer, as a machine that sees all would tell of them."""

    pause_ns: int
    """Since the answer before."""
    there_ns: int
    back_ns: int


class Clocks:
    """Two monotonic clocks that drift apart as fast as they may, or more slowly."""

    def __init__(self, offset_ns: int, drift_ppm: float) -> None:
        self.now_ns = 10 * S
        self._offset_ns, self._drift_ppm = offset_ns, drift_ppm

    @property
    def ahead_ns(self) -> int:
        """How far the other one is ahead now."""
        return self._offset_ns + round(self.now_ns * self._drift_ppm / 1_000_000)

    def ask(self, exchange: Exchange) -> ClockSample:
        """Ask for the other one."""
        asked_ns = self.now_ns = self.now_ns + exchange.pause_ns
        self.now_ns += exchange.there_ns
        shown_ns = self.now_ns + self.ahead_ns
        self.now_ns += exchange.back_ns
        return ClockSample(asked_ns, shown_ns, self.now_ns)


DELAYS = st.integers(0, 5 * S)
EXCHANGES = st.lists(st.builds(Exchange, st.integers(0, 100 * S), DELAYS, DELAYS), min_size=1, max_size=40)
CLOCKS = st.builds(Clocks, OFFSETS, st.floats(-DRIFT_PPM * 0.999, DRIFT_PPM * 0.999))


@given(CLOCKS, EXCHANGES, st.integers(0, 1000 * S))
def test_the_truth_is_never_outside_of_the_bound(
    clocks: Clocks, exchanges: list[Exchange], later_ns: int
) -> None:
    """However long each way takes, and however much later one asks."""
    samples = ClockSamples()
    for exchange in exchanges:
        samples.add(clocks.ask(exchange))
        assert is_within(samples.estimate(clocks.now_ns), clocks.ahead_ns)
    clocks.now_ns += later_ns
    assert is_within(samples.estimate(clocks.now_ns), clocks.ahead_ns)


def is_within(estimate: ClockEstimate | None, ahead_ns: int) -> bool:
    """Whether an estimate is true, to what rounding of the test's own clocks may do."""
    return estimate is not None and abs(estimate.offset_ns - ahead_ns) <= estimate.bound_ns + 2


@given(CLOCKS, EXCHANGES)
def test_no_sample_of_the_last_minute_is_better_than_the_one_that_counts(
    clocks: Clocks, exchanges: list[Exchange]
) -> None:
    """Nor is the newest, however old the others are."""
    samples, asked = ClockSamples(), []
    for exchange in exchanges:
        asked.append(clocks.ask(exchange))
        samples.add(asked[-1])
    recent = [sample for sample in asked if sample.asked_ns >= clocks.now_ns - 60 * S] or asked[-1:]
    best_ns = min(sample.estimate(clocks.now_ns).bound_ns for sample in recent)
    assert samples.estimate(clocks.now_ns) is not None
    assert getattr(samples.estimate(clocks.now_ns), "bound_ns", None) == best_ns


def test_the_bound_is_half_of_the_round_trip_and_the_drift_since() -> None:
    """Of 2 ms, and of 10 s at 200 ppm."""
    sample = ClockSample(0, 50 * S + 1 * MS, 2 * MS)
    estimate = sample.estimate(10 * S)
    assert estimate.offset_ns == 50 * S
    assert estimate.bound_ns == pytest.approx(1 * MS + 2 * MS, abs=10)
    # Without samples nothing is known. Neither an offset nor a bound.
    assert ClockSamples().estimate(0) is None


def test_a_quick_answer_counts_until_drift_has_made_it_worse_than_a_slow_one() -> None:
    """A slow one is 10 ms wrong at most, which is 50 s of drift."""
    samples = ClockSamples()
    samples.add(ClockSample(0, S, 0))
    for second in range(1, 60):
        samples.add(ClockSample(second * S, second * S + S + 15 * MS, second * S + 20 * MS))
        estimate = samples.estimate(second * S + 20 * MS)
        assert estimate is not None
        assert (estimate.offset_ns == S) == (second <= 50)
    # Samples that contradict the newest are forgotten.
    samples = ClockSamples()
    samples.add(ClockSample(0, S, 0))
    samples.add(ClockSample(5 * S, 3 * S, 5 * S + 100 * MS))
    estimate = samples.estimate(5 * S + 100 * MS)
    assert estimate is not None
    assert estimate.offset_ns == -2 * S - 50 * MS


TARGETS = st.lists(
    st.tuples(st.integers(0, 10 * S), st.integers(-LARGEST_SLEW_NS // 2, LARGEST_SLEW_NS // 2)), max_size=20
)


def follow(slewed: SlewedOffset, steps: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The times at which an offset was looked at while it followed others, and what it was."""
    now_ns = 0
    for pause_ns, target_ns in steps:
        for _ in range(4):
            now_ns += pause_ns // 4
            yield now_ns, slewed.find(now_ns)
        slewed.follow(target_ns, now_ns)
        yield now_ns, slewed.find(now_ns)


@given(TARGETS)
def test_an_offset_in_use_never_jumps(steps: list[tuple[int, int]]) -> None:
    """It changes by 500 ppm at most, so that no due time is passed over, and none comes twice."""
    at_ns, offset_ns = 0, 0
    for now_ns, found_ns in follow(SlewedOffset(0, 0), steps):
        assert abs(found_ns - offset_ns) <= (now_ns - at_ns) * SLEW_PPM // 1_000_000 + 1
        at_ns, offset_ns = now_ns, found_ns


@given(st.integers(-LARGEST_SLEW_NS, LARGEST_SLEW_NS))
def test_an_offset_in_use_arrives(target_ns: int) -> None:
    """After 2,000 times the difference, and stays there."""
    slewed = SlewedOffset(0, 0)
    slewed.follow(target_ns, 0)
    assert slewed.find(2000 * abs(target_ns)) == target_ns
    assert slewed.find(10**6 * S) == target_ns


def test_an_offset_that_is_far_away_is_taken_at_once() -> None:
    """It would take minutes else, and requests would be early or late all that time."""
    slewed = SlewedOffset(0, 0)
    slewed.follow(LARGEST_SLEW_NS + 1, 0)
    assert slewed.find(0) == LARGEST_SLEW_NS + 1
