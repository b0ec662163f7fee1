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


def test_the_time_left_comes_from_the_recent_rate(make_tick: MakeTick) -> None:
    """The requests that have not ended are divided by the mean rate of the last ten seconds."""
    tracker = TrendTracker()
    for rate in [1.0] * 5 + [900.0, 1100.0] * (RECENT_TICKS // 2):
        trend = tracker.add(make_tick(requests_total=10_000, accounted=5_000, done=6_000, rate_rps=rate))
    assert trend.recent_rps == pytest.approx(1000)
    assert trend.left_s == pytest.approx(4.0)


def test_the_average_counts_what_has_ended(make_tick: MakeTick) -> None:
    """Requests of active leases count as well."""
    assert TrendTracker().add(
        make_tick(accounted=900, done=1_000, active_s=10.0)
    ).average_rps == pytest.approx(100)


def test_a_run_that_has_not_begun_has_no_average(make_tick: MakeTick) -> None:
    """Nothing is divided by zero."""
    assert TrendTracker().add(make_tick(accounted=0, done=0, active_s=0.0)).average_rps == 0


def test_there_is_no_estimate_from_too_little(make_tick: MakeTick) -> None:
    """The first seconds are slower than the rest of the run."""
    tracker = TrendTracker()
    estimates = [tracker.add(make_tick()).left_s for _ in range(FEWEST_TICKS)]
    assert estimates[:-1] == [None] * (FEWEST_TICKS - 1)
    assert estimates[-1] is not None


@pytest.mark.parametrize("changes", [{"rate_rps": 0.0}, {"state": RunState.PAUSED}])
def test_what_does_not_move_has_no_time_left(make_tick: MakeTick, changes: dict[str, object]) -> None:
    """Neither a stalled nor a paused run has an estimate."""
    tracker = TrendTracker()
    trends = [tracker.add(make_tick(**changes)) for _ in range(FEWEST_TICKS)]
    assert trends[-1].left_s is None


def test_a_pause_does_not_lengthen_the_estimate(make_tick: MakeTick) -> None:
    """The rate after a pause is that of the seconds since."""
    tracker = TrendTracker()
    for _ in range(RECENT_TICKS):
        tracker.add(make_tick(state=RunState.PAUSED, rate_rps=0.0))
    assert tracker.add(make_tick(rate_rps=500.0)).recent_rps == pytest.approx(500)


def test_no_more_rates_are_kept_than_are_shown(make_tick: MakeTick) -> None:
    """Memory does not grow with the length of the run, and the newest rate is the last."""
    tracker = TrendTracker()
    for second in range(SHOWN_TICKS + 10):
        trend = tracker.add(make_tick(rate_rps=float(second)))
    assert trend.rates_rps == tuple(float(second) for second in range(10, SHOWN_TICKS + 10))


def test_a_second_without_a_tick_stays_empty(make_tick: MakeTick) -> None:
    """A coordinator that was away leaves a gap; a tick that is late by less than a second leaves none."""
    tracker = TrendTracker()
    for at in (100.0, 101.9, 102.0, 105.1):
        trend = tracker.add(make_tick(at=at, rate_rps=5.0))
    assert trend.rates_rps == (5.0, 5.0, 5.0, None, None, 5.0)
    assert trend.recent_rps == pytest.approx(5)


def test_a_tick_that_tells_of_more_fills_what_it_tells_of(make_tick: MakeTick) -> None:
    """A coordinator that was stopped for ten seconds hears of three of them afterwards."""
    tracker = TrendTracker()
    tracker.add(make_tick(at=100.0, rate_rps=5.0))
    trend = tracker.add(make_tick(at=110.2, seconds=3.1, rate_rps=4.0))
    assert trend.rates_rps == (5.0, *[None] * 7, 4.0, 4.0, 4.0)


def test_a_tick_that_is_a_little_short_leaves_the_gap_as_it_is(make_tick: MakeTick) -> None:
    """This tick follows a late one, after a slow follower has missed some."""
    tracker = TrendTracker()
    tracker.add(make_tick(at=100.0, rate_rps=5.0))
    assert tracker.add(make_tick(at=103.0, seconds=0.99, rate_rps=4.0)).rates_rps == (5.0, None, None, 4.0)


def test_a_late_tick_does_not_hide_a_second_without_one(make_tick: MakeTick) -> None:
    """The gap is counted in whole seconds, at which ticks are due."""
    tracker = TrendTracker()
    tracker.add(make_tick(at=100.3, rate_rps=5.0))
    assert tracker.add(make_tick(at=103.003, rate_rps=4.0)).rates_rps == (5.0, None, None, 4.0)


def test_a_gap_is_no_longer_than_what_is_shown(make_tick: MakeTick) -> None:
    """The run is looked at again after a day."""
    tracker = TrendTracker()
    tracker.add(make_tick(at=100.0))
    assert tracker.add(make_tick(at=100_000.0, rate_rps=5.0)).rates_rps == (*[None] * (SHOWN_TICKS - 1), 5.0)


def test_a_clock_that_is_set_back_leaves_no_gap(make_tick: MakeTick) -> None:
    """This may be the coordinator's clock or that of the node to which it moves."""
    tracker = TrendTracker()
    tracker.add(make_tick(at=100.0, rate_rps=5.0))
    assert tracker.add(make_tick(at=40.0, rate_rps=5.0)).rates_rps == (5.0, 5.0)


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


def test_without_answers_there_are_no_quantiles(make_tick: MakeTick) -> None:
    """The latency is unknown, not zero."""
    trend = TrendTracker().add(make_tick(times={}))
    assert trend.times[Time.LATENCY] == (None, None)


def test_response_time_and_lateness_have_quantiles_of_their_own(make_tick: MakeTick) -> None:
    """A run without a rate has neither."""
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


def test_the_progress_of_a_run_is_in_requests(make_tick: MakeTick) -> None:
    """It is known how many it has."""
    assert not has_open_end(make_tick())
    assert measure_progress(make_tick()) == (400_000, 412_345, 1_000_000)


def test_the_progress_of_a_run_that_a_time_ends_is_in_time(timed: Tick) -> None:
    """Nobody knows how many requests it will have."""
    assert has_open_end(timed)
    assert measure_progress(timed) == (15_000, 15_000, 60_000)


def test_a_line_names_no_total_where_there_is_none(timed: Tick) -> None:
    """The percentage and the time left are those of the time."""
    line = build_line(timed, TrendTracker().add(timed))
    assert line.startswith("running 412,345 (25.0 %, 400,000 accounted)")
    assert line.endswith(" left 45 s")


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


def test_the_progress_of_a_run_with_a_rate_is_in_requests(make_tick: MakeTick) -> None:
    """Its number is known, and with `late: send` it may take longer than its time."""
    tick = msgspec.structs.replace(make_tick(requests_planned=100), clock_s=59.0, length_s=60.0)
    assert not may_end_early(tick)
    assert measure_progress(tick) == (400_000, 412_345, 1_000_000)
