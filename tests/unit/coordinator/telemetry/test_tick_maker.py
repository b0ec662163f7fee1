from typing import Any

import pytest

from oku_coordinator.ledger.records import RunRecord, Standing
from oku_coordinator.telemetry.tick_maker import TickMaker
from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.interval import Lengths
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Spec


def build_latency(*values_us: int) -> HistogramSnapshot:
    """A histogram of these latencies, as it travels."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram.build_latency()


def build_progress(worker: str = "w1", ok: int = 0, **changes: Any) -> Progress:
    """A second of a worker in which so many requests were ok."""
    values: dict[str, Any] = {"incarnation": "b1", "at": 0.0, "outcomes": [ok, 0, 0, 0, 0, 0]}
    return Progress(worker=worker, **values | changes)


def build_standing(*leases: str, leased: int = 100) -> Standing:
    """A run that has been active since 10 s, with 300 requests accounted."""
    record = RunRecord(
        run="r1", name="", requests=1000, engine="aiohttp", target="",
        spec=Spec(requests=1000), state=RunState.RUNNING, reason="", created_at=0.0,
        started_at=10.0, ended_at=None, active_s=0.0, active_since=10.0, windows=1, last_report_at=None,
        resent_at_most=7, served=None, outcomes=[290, 10, 0, 0, 0, 0], is_broken=False,
        is_published=False, number=1,
    )  # fmt: skip
    return Standing(
        record=record, lengths=Lengths(pending=1000 - 300 - leased, leased=leased, accounted=300),
        leases=frozenset(leases),
    )  # fmt: skip


@pytest.fixture
def ticks() -> TickMaker:
    """Nothing was heard yet."""
    return TickMaker()


def test_a_tick_without_progress_shows_the_ledger(ticks: TickMaker) -> None:
    """Nobody has said anything in this second."""
    tick = ticks.build_tick(build_standing(), workers=2, now=15.0)
    assert (tick.run, tick.at, tick.state, tick.workers) == ("r1", 15.0, RunState.RUNNING, 2)
    assert (tick.requests, tick.accounted, tick.leased, tick.pending) == (1000, 300, 100, 600)
    assert (tick.resent_at_most, tick.active_s, tick.rate_rps, tick.ended) == (7, 5.0, 0.0, 0)
    assert tick.total_outcomes == [290, 10, 0, 0, 0, 0]
    assert (tick.latency, tick.p50_ms, tick.p99_ms) == (HistogramSnapshot(), None, None)


def test_a_tick_has_the_notices_of_its_run(ticks: TickMaker) -> None:
    """None unless there are any."""
    notices = ["waiting for workers: none is here"]
    assert ticks.build_tick(build_standing(), workers=0, now=15.0, notices=notices).notices == notices
    assert ticks.build_tick(build_standing(), workers=0, now=15.0).notices == []


def test_a_tick_sums_what_all_workers_say(ticks: TickMaker) -> None:
    """Counts, bytes and histograms add up; of the lags the largest counts."""
    first = build_latency(1000, 3000)
    second = build_latency(2000)
    ticks.add(build_progress("w1", 2, bytes_received=20, in_flight=5, lag_s=0.2, latency=first))
    ticks.add(build_progress("w2", 1, bytes_received=10, in_flight=7, lag_s=0.1, latency=second))
    tick = ticks.build_tick(build_standing(), workers=2, now=15.0)
    assert (tick.rate_rps, tick.outcomes) == (3.0, [3, 0, 0, 0, 0, 0])
    assert (tick.bytes_received, tick.in_flight, tick.lag_s) == (30, 12, 0.2)
    assert tick.latency == build_latency(1000, 2000, 3000)
    assert tick.p50_ms == pytest.approx(2.0, rel=0.001)
    assert tick.p99_ms == pytest.approx(3.0, rel=0.001)


def test_a_tick_is_as_long_as_the_time_since_the_last(ticks: TickMaker) -> None:
    """The first stands for a second, and so does one that was held up for a moment."""
    lengths = []
    for now in (15.0, 16.0, 17.4, 17.9):
        ticks.add(build_progress(ok=6))
        tick = ticks.build_tick(build_standing(), workers=1, now=now)
        lengths.append(tick.seconds)
        assert tick.rate_rps == 6.0
    assert lengths == [1.0, 1.0, 1.0, pytest.approx(0.5)]


def test_after_a_standstill_a_tick_is_as_long_as_workers_tell(ticks: TickMaker) -> None:
    """A coordinator that was stopped hears what they did meanwhile, each of its own time."""
    ticks.build_tick(build_standing(), workers=2, now=15.0)
    for worker in ("w1", "w2"):
        for _ in range(4):
            ticks.add(build_progress(worker, ok=3))
    ticks.add(build_progress("w2", ok=4, seconds=2.0))
    tick = ticks.build_tick(build_standing(), workers=2, now=27.0)
    assert (tick.seconds, sum(tick.outcomes)) == (6.0, 28)
    assert tick.rate_rps == pytest.approx(28 / 6)


def test_a_machine_that_slept_leaves_a_gap(ticks: TickMaker) -> None:
    """Nobody did anything for an hour: it is no part of a second."""
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    ticks.add(build_progress(ok=6))
    tick = ticks.build_tick(build_standing(), workers=1, now=3615.0)
    assert (tick.seconds, tick.rate_rps) == (1.0, 6.0)


def test_a_tick_is_no_longer_than_the_time_since_the_last(ticks: TickMaker) -> None:
    """Of very many workers each tells of several seconds at a time; and a clock may be set back."""
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    ticks.add(build_progress(ok=60, seconds=10.0))
    assert ticks.build_tick(build_standing(), workers=1, now=16.0).seconds == 1.0
    assert 0 < ticks.build_tick(build_standing(), workers=1, now=3.0).seconds < 0.01


def test_each_event_enters_one_tick(ticks: TickMaker) -> None:
    """The next one begins at nothing, but for what still is: requests in flight."""
    ticks.add(build_progress(ok=4, bytes_received=20, in_flight=5, lag_s=0.2, latency=build_latency(1000)))
    ticks.build_tick(build_standing(), workers=1, now=15.0)
    tick = ticks.build_tick(build_standing(), workers=1, now=16.0)
    assert (tick.rate_rps, sum(tick.outcomes), tick.bytes_received, tick.lag_s) == (0.0, 0, 0, 0.0)
    assert tick.latency == HistogramSnapshot()
    assert tick.in_flight == 5


def test_quantiles_are_of_the_last_five_seconds(ticks: TickMaker) -> None:
    """Merged, so that they do not jump; then the oldest second leaves them."""
    quantiles = []
    for latency_us in (9000, 1000, 1000, 1000, 1000, 1000):
        ticks.add(build_progress(latency=build_latency(latency_us)))
        tick = ticks.build_tick(build_standing(), workers=1, now=15.0)
        quantiles.append((tick.p50_ms, tick.p99_ms))
    assert quantiles == [(9.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 9.0), (1.0, 1.0)]


def test_what_is_under_way_counts_until_it_is_accounted(ticks: TickMaker) -> None:
    """A lease that is not active any more is in the ledger by now, or was taken back."""
    ticks.add(build_progress("w1", leases={"l1": [30, 0, 1, 0, 0, 0], "l2": [5, 0, 0, 0, 0, 0]}))
    ticks.add(build_progress("w2", leases={"l3": [0, 2, 0, 0, 0, 0]}))
    tick = ticks.build_tick(build_standing("l1", "l3"), workers=2, now=15.0)
    assert tick.ended == 33
    assert tick.total_outcomes == [320, 12, 1, 0, 0, 0]
    tick = ticks.build_tick(build_standing("l3"), workers=2, now=16.0)
    assert tick.total_outcomes == [290, 12, 0, 0, 0, 0]
    assert len(tick.total_outcomes) == len(OUTCOMES)


def test_no_more_has_ended_than_is_leased(ticks: TickMaker) -> None:
    """Whatever a worker says."""
    ticks.add(build_progress(leases={"l1": [500, 0, 0, 0, 0, 0]}))
    assert ticks.build_tick(build_standing("l1", leased=100), workers=1, now=15.0).ended == 100


def test_a_dead_worker_has_nothing_in_flight(ticks: TickMaker) -> None:
    """Forgetting one that was never heard does no harm."""
    ticks.add(build_progress("w1", in_flight=5))
    ticks.add(build_progress("w2", in_flight=7))
    ticks.forget_worker("w1")
    ticks.forget_worker("w9")
    assert ticks.build_tick(build_standing(), workers=1, now=15.0).in_flight == 7
