import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, count_sent
from oku_core.results.sample import Sample, build_sample, merge_steps
from oku_core.results.series import SeriesRow, find_seconds, join_series, place

REQUESTS = 10**9

counts = st.lists(st.integers(0, 1000), min_size=len(OUTCOMES), max_size=len(OUTCOMES))
all_series = st.dictionaries(st.integers(0, 80), counts, max_size=40)


def see(at: float, seconds: float = 1.0, ok: int = 0, active_s: float | None = None) -> Sample:
    """A sample that a coordinator kept; what ended in it is in the series."""
    return build_sample(
        at=at, seconds=seconds, requests_total=REQUESTS, accounted=7, leased=2, pending=REQUESTS - 9, done=8,
        resent_at_most=1, active_s=at if active_s is None else active_s, workers=3, in_flight=4.0,
        outcomes=make_counts(ok), lag_s=0.1, times={Time.LATENCY: HistogramSnapshot()},
    )  # fmt: skip


@st.composite
def all_samples(draw: st.DrawFn) -> list[Sample]:
    """Samples as ticks, late ticks, standstills and pauses make them."""
    at, samples = draw(st.floats(0.0, 5.0)), []
    for step_s in draw(st.lists(st.one_of(st.floats(0.95, 1.05), st.floats(0.01, 12.0)), max_size=40)):
        at += step_s
        samples.append(see(at, min(step_s, draw(st.sampled_from([1.0, 3.0]))), draw(st.integers(0, 3))))
    return samples


def build_rows(series: Mapping[int, Sequence[int]], step_s: int = 1) -> list[SeriesRow]:
    """The rows of a series, merged along steps."""
    steps: dict[int, list[Sequence[int]]] = {}
    for second in sorted(series):
        steps.setdefault(second // step_s, []).append(series[second])
    return [
        SeriesRow(second=step * step_s, seconds=step_s, outcomes=ended, sent=count_sent(ended) + 1)
        for step, merged in steps.items()
        for ended in [sum_up(merged)]
    ]


def sum_up(outcomes: Sequence[Sequence[int]]) -> list[int]:
    """The sum of accounts of outcomes."""
    return [sum(column) for column in zip(*outcomes, strict=True)] or [0] * len(OUTCOMES)


def sum_samples(samples: Sequence[Sample]) -> list[int]:
    """What samples have counted."""
    return sum_up([sample.outcomes for sample in samples])


@given(all_samples(), all_series)
def test_samples_and_series_together_lose_nothing(
    samples: list[Sample], series: Mapping[int, list[int]]
) -> None:
    """Whatever the coordinator saw, each request of the series is in one sample."""
    rows = build_rows(series)
    joined = join_series(samples, rows, REQUESTS)
    assert sum_samples(joined) == sum_up([sum_samples(samples), *series.values()])
    assert sum(sample.requests_sent for sample in joined) == sum(row.sent for row in rows)
    assert all(sample.requests_ended == count_sent(sample.outcomes) for sample in joined)
    assert [sample.at for sample in joined] == sorted({sample.at for sample in joined})
    assert {sample.at for sample in samples} <= {sample.at for sample in joined}


@given(all_samples(), all_series, st.integers(1, 5))
def test_merged_samples_lose_nothing(
    samples: list[Sample], series: Mapping[int, list[int]], power: int
) -> None:
    """The rows of the series are merged along the same steps as the samples, or not yet."""
    thin = merge_steps(samples, 2**power)
    for step_s in (1, 2**power):
        joined = join_series(thin, build_rows(series, step_s), REQUESTS)
        assert sum_samples(joined) == sum_up([sum_samples(samples), *series.values()])
        assert [sample.at for sample in joined] == sorted({sample.at for sample in joined})


def test_merged_rows_meet_merged_samples() -> None:
    """A sample that ends with a step of time has the counts of this step."""
    samples = [see(at + 0.003) for at in range(11, 22)]
    series = {second: make_counts(second) for second in range(10, 21)}
    joined = join_series(merge_steps(samples, 4), build_rows(series, 4), REQUESTS)
    assert [(round(sample.at), sample.outcomes[0]) for sample in joined] == [
        (12, 10 + 11), (16, 12 + 13 + 14 + 15), (20, 16 + 17 + 18 + 19), (21, 20),
    ]  # fmt: skip


def test_each_second_belongs_to_the_sample_that_ends_with_it() -> None:
    """Ticks come a few milliseconds after the second, the last one when the run comes to rest."""
    samples = [see(11.002), see(12.004), see(13.001), see(13.3, 0.3)]
    assert find_seconds(samples) == [(10, 11), (11, 12), (12, 13), (13, 14)]
    series = {second: make_counts(second, protocol_error=1) for second in range(10, 14)}
    joined = join_series(samples, build_rows(series), REQUESTS)
    assert [sample.outcomes[0] for sample in joined] == [10, 11, 12, 13]
    assert [sample.rate_rps for sample in joined[:3]] == [11.0, 12.0, 13.0]
    assert joined[-1].rate_rps == 14.0


@dataclass(frozen=True)
class Watch:
    """For how long a coordinator watched a run, and how late each of its ticks was; then it was away."""

    away_s: int
    late_s: list[float]


watches = st.builds(
    Watch, st.integers(1, 30), st.lists(st.integers(0, 300).map(lambda ms: ms / 1000), min_size=1, max_size=8)
)


def watch(
    watched: Sequence[Watch], started_at: float, ended_s: float
) -> tuple[list[Sample], float, set[int], set[int]]:
    """The samples of a run that went on all the time, its end, and the seconds with and without a tick."""
    samples: list[Sample] = []
    at, ticked, away = math.floor(started_at), set[int](), set[int]()
    for number, each in enumerate(watched):
        before: float | None = None  # a new coordinator has made no tick yet
        if number:
            away |= set(range(at, at + each.away_s))
            at += each.away_s
        for late_s in each.late_s:
            at += 1
            if before is not None and before - (at - 1) > 0.25:
                ticked.add(at - 1)
                at += 1  # the second after a very late tick has none
            ticked.add(at - 1)
            seconds = 1.0 if before is None else at + late_s - before
            before = at + late_s
            samples.append(see(before, seconds, active_s=before - started_at))
    if ended_s and before is not None and at + ended_s > before:
        last = at + ended_s
        samples.append(see(last, last - before, active_s=last - started_at))
        return samples, last, ticked | {at}, away
    return samples, float(at), ticked, away


@given(st.lists(watches, min_size=1, max_size=5), st.floats(1000.0, 1000.99), st.floats(0.0, 0.99))
def test_late_ticks_and_gaps_leave_each_second_to_one_sample(
    watched: Sequence[Watch], started_at: float, ended_s: float
) -> None:
    """No sample has the counts of two seconds in the length of one, wherever a coordinator went away."""
    samples, ended_at, ticked, away = watch(watched, started_at, ended_s)
    seconds = range(math.floor(started_at), math.ceil(ended_at))
    series = {
        second: make_counts(round(1000 * (min(second + 1, ended_at) - max(second, started_at))))
        for second in seconds
    }
    joined = join_series(samples, build_rows(series), REQUESTS)
    spans = find_seconds(samples)
    assert sorted(second for first, stop in spans for second in range(first, stop)) == sorted(ticked)
    assert {round(sample.at) - 1 for sample in joined if sample.workers is None} == away
    assert sum_samples(joined) == sum_up(list(series.values()))
    for sample in joined:
        assert sample.requests_ended <= 1000 * max(1.0, sample.seconds) + 1, sample
        assert sample.seconds <= ended_at - math.floor(started_at)


def test_a_second_without_a_sample_gets_one() -> None:
    """While the coordinator was away its ledger did not change, and nobody saw what was in flight."""
    rows = build_rows({12: make_counts(5), 14: make_counts(1)})
    joined = join_series([see(11.0), see(15.0)], rows, REQUESTS)
    assert [(sample.at, sample.requests_ended) for sample in joined] == [(11.0, 0), (13.0, 5), (15.0, 1)]
    filled = joined[1]
    assert (filled.workers, filled.in_flight, filled.lag_s, filled.p50_ms) == (None, None, None, None)
    assert (filled.accounted, filled.leased, filled.done, filled.active_s) == (7, 2, 13, 13.0)
    # A run without samples has its series.
    (sample,) = join_series([], build_rows({12: make_counts(5, connect_error=1)}), 6)
    assert (sample.at, sample.requests_ended, sample.pending, sample.done) == (13.0, 6, 6, 6)
    assert join_series([], [], 6) == []
    # The second before a coordinator goes away has its own counts.
    joined = join_series(
        [see(11.003), see(12.003), see(15.003)],
        build_rows({second: make_counts(100) for second in range(10, 15)}),
        REQUESTS,
    )
    assert [(round(sample.at), sample.rate_rps) for sample in joined] == [
        (11, 100.0), (12, 100.0), (13, 100.0), (14, 100.0), (15, 100.0),
    ]  # fmt: skip
    # A late tick is as long as its seconds. The rate of two seconds is not that of one.
    rows = build_rows({11: make_counts(30), 12: make_counts(18)})
    joined = join_series([see(11.0), see(12.6)], rows, REQUESTS)
    assert (joined[1].seconds, joined[1].requests_ended) == (joined[1].at - 11.0, 48)


def test_a_clock_that_is_wrong_is_shifted() -> None:
    """The shape stays as far as the time from the cut to now allows."""
    series = {100: make_counts(1), 102: make_counts(2)}
    behind = place(series, started_at=100.2, cut_at=3700.4, now=3710.0)
    assert behind == {3700: make_counts(1), 3702: make_counts(2)}
    ahead = place(series, started_at=100.2, cut_at=50.0, now=60.5)
    assert ahead == {58: make_counts(1), 60: make_counts(2)}
    # Clocks that agree are left alone. A second is where the worker saw it.
    assert place(series, started_at=100.2, cut_at=99.9, now=103.1) == series


@given(all_series, st.floats(0, 200), st.floats(0, 200), st.floats(0, 200))
def test_placing_loses_nothing(
    series: Mapping[int, list[int]], started_at: float, cut_at: float, now: float
) -> None:
    """Each second is between the cut of the lease and now, however wrong a clock is."""
    placed = place(series, started_at=started_at, cut_at=cut_at, now=now)
    assert sum_up(list(placed.values())) == sum_up(list(series.values()))
    last = max(math.floor(now), math.floor(cut_at))
    assert all(math.floor(cut_at) <= second <= last for second in placed)
