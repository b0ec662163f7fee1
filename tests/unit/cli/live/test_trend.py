from collections.abc import Callable

import msgspec
import pytest

from oku_cli.live.plain import build_line
from oku_cli.live.trend import (
    FEWEST_TICKS,
    RECENT_TICKS,
    SHOWN_TICKS,
    TrendTracker,
    has_open_end,
    may_end_early,
    measure_progress,
)
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import DUE_TIMES, Time
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import OPEN_END
from oku_core.summary.tick import Tick

MakeTick = Callable[..., Tick]


def test_the_average_counts_what_has_ended(make_tick: MakeTick) -> None:
    """Requests of active leases count as well; a run that has not begun has no average."""
    assert TrendTracker().add(
        make_tick(accounted=900, done=1_000, active_s=10.0)
    ).average_rps == pytest.approx(100)
    assert TrendTracker().add(make_tick(accounted=0, done=0, active_s=0.0)).average_rps == 0


@pytest.mark.parametrize("changes", [{"rate_rps": 0.0}, {"state": RunState.PAUSED}])
def test_what_does_not_move_has_no_time_left(make_tick: MakeTick, changes: dict[str, object]) -> None:
    """Neither a stalled nor a paused run has an estimate."""
    tracker = TrendTracker()
    trends = [tracker.add(make_tick(**changes)) for _ in range(FEWEST_TICKS)]
    assert trends[-1].left_s is None


def test_the_time_left_comes_from_the_recent_rate(make_tick: MakeTick) -> None:
    """The requests that have not ended are divided by the mean rate of the last ten seconds."""
    tracker = TrendTracker()
    for rate in [1.0] * 5 + [900.0, 1100.0] * (RECENT_TICKS // 2):
        trend = tracker.add(make_tick(requests_total=10_000, accounted=5_000, done=6_000, rate_rps=rate))
    assert trend.recent_rps == pytest.approx(1000)
    assert trend.left_s == pytest.approx(4.0)
    # There is no estimate from too little. The first seconds are slower than the rest of the run.
    tracker = TrendTracker()
    estimates = [tracker.add(make_tick()).left_s for _ in range(FEWEST_TICKS)]
    assert estimates[:-1] == [None] * (FEWEST_TICKS - 1)
    assert estimates[-1] is not None
    # A pause does not lengthen the estimate. The rate after a pause is that of the seconds since.
    tracker = TrendTracker()
    for _ in range(RECENT_TICKS):
        tracker.add(make_tick(state=RunState.PAUSED, rate_rps=0.0))
    assert tracker.add(make_tick(rate_rps=500.0)).recent_rps == pytest.approx(500)
    # No more rates are kept than are shown.
    tracker = TrendTracker()
    for second in range(SHOWN_TICKS + 10):
        trend = tracker.add(make_tick(rate_rps=float(second)))
    assert trend.rates_rps == tuple(float(second) for second in range(10, SHOWN_TICKS + 10))


def test_a_second_without_a_tick_stays_empty(make_tick: MakeTick) -> None:
    """The gap is counted in whole seconds, at which ticks are due, and in at most as many as are shown."""
    wrong = []
    for why, (ticks, rates) in {
        "a coordinator was away": (
            [(100.0, 1.0), (101.9, 1.0), (102.0, 1.0), (105.1, 1.0)], (5.0, 5.0, 5.0, None, None, 5.0),
        ),
        "a tick reports more seconds": ([(100.0, 1.0), (110.2, 3.1)], (5.0, *[None] * 7, 5.0, 5.0, 5.0)),
        "a tick is a little short": ([(100.0, 1.0), (103.0, 0.99)], (5.0, None, None, 5.0)),
        "a tick follows a late one": ([(100.3, 1.0), (103.003, 1.0)], (5.0, None, None, 5.0)),
        "a day without a tick": ([(100.0, 1.0), (100_000.0, 1.0)], (*[None] * (SHOWN_TICKS - 1), 5.0)),
        "a clock is set back": ([(100.0, 1.0), (40.0, 1.0)], (5.0, 5.0)),
    }.items():  # fmt: skip
        tracker = TrendTracker()
        trends = [tracker.add(make_tick(at=at, seconds=seconds, rate_rps=5.0)) for at, seconds in ticks]
        if trends[-1].rates_rps != rates or trends[-1].recent_rps != pytest.approx(5):
            wrong.append((why, trends[-1]))
    assert wrong == []


def test_quantiles_are_of_the_last_five_seconds(make_tick: MakeTick) -> None:
    """They are merged so that they do not jump, and then the oldest second leaves them."""
    tracker = TrendTracker()
    quantiles = []
    for latency_us in (9000, 1000, 1000, 1000, 1000, 1000):
        histogram = Histogram()
        histogram.record(latency_us)
        trend = tracker.add(make_tick(times={Time.LATENCY: histogram.build_latency()}))
        quantiles.append(trend.times[Time.LATENCY])
    assert quantiles == [(9.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 1.0)]
    # Response time and lateness have quantiles of their own.
    trend = TrendTracker().add(make_tick(times={}))
    assert trend.times[Time.LATENCY] == (None, None)
    tracker = TrendTracker()
    for value_us in (1000, 3000):
        histogram = Histogram()
        histogram.record(value_us)
        times = histogram.build_latency()
        trend = tracker.add(make_tick(times=dict.fromkeys(DUE_TIMES, times)))
    assert trend.times[Time.RESPONSE_TIME] == trend.times[Time.LATENESS] == (1.0, 3.0)
    assert TrendTracker().add(make_tick()).times[Time.LATENESS] == (None, None)


@pytest.mark.parametrize(
    ("clock_s", "changes", "left_s"),
    [
        (15.0, {"requests_total": OPEN_END}, 45.0),
        (60.0, {"requests_total": OPEN_END}, 0.0),
        (15.0, {"requests_planned": 100}, 45.0),
        (60.0, {"requests_planned": 100}, 2.0),
        (15.0, {}, 2.0),
        (59.0, {}, 1.0),
    ],
)
def test_the_time_left_is_that_to_the_end_that_comes_first(
    make_tick: MakeTick, clock_s: float, changes: dict[str, int], left_s: float
) -> None:
    """A rate may still send late what it could not; of a number and a time, either ends the run."""
    tick = make_tick(**{"requests_total": 3_000, "done": 1_000, "rate_rps": 1_000.0} | changes)
    tick = msgspec.structs.replace(tick, clock_s=clock_s, length_s=60.0)
    tracker = TrendTracker()
    assert [tracker.add(tick).left_s for _ in range(FEWEST_TICKS)][-1] == pytest.approx(left_s)


@pytest.fixture
def timed(make_tick: MakeTick) -> Tick:
    """A second of a run that has been active for 15 of its 60 seconds."""
    tick = make_tick(requests_total=OPEN_END)
    return msgspec.structs.replace(tick, clock_s=15.0, length_s=60.0)


@pytest.mark.parametrize(
    ("clock_s", "progress"),
    [(15.0, (400_000, 412_345, 1_000_000)), (30.0, (30_000, 30_000, 60_000))],
)
def test_the_progress_of_a_run_with_a_number_and_a_time_is_that_of_the_nearer_end(
    make_tick: MakeTick, clock_s: float, progress: tuple[int, int, int]
) -> None:
    """Whichever comes first ends it, so it has at most that number."""
    tick = msgspec.structs.replace(make_tick(), clock_s=clock_s, length_s=60.0)
    assert may_end_early(tick)
    assert measure_progress(tick) == progress
    assert "412,345/at most 1,000,000" in build_line(tick, TrendTracker().add(tick))


def test_progress_is_in_requests_where_their_number_is_known(make_tick: MakeTick, timed: Tick) -> None:
    """That of a run which only a time ends is in time, and its line names no total."""
    assert not has_open_end(make_tick())
    assert measure_progress(make_tick()) == (400_000, 412_345, 1_000_000)
    assert has_open_end(timed)
    assert measure_progress(timed) == (15_000, 15_000, 60_000)
    line = build_line(timed, TrendTracker().add(timed))
    assert line.startswith("running 412,345 (25.0 %, 400,000 accounted)")
    assert line.endswith(" left 45 s")
    tick = msgspec.structs.replace(make_tick(requests_planned=100), clock_s=59.0, length_s=60.0)
    assert not may_end_early(tick)
    assert measure_progress(tick) == (400_000, 412_345, 1_000_000)
