import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.counting_signals import CountingSignals
from tests.kit.coordinators.leases import (
    Deal,
    MakeBatch,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
)
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history, keep_second, record_lost_threshold
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot, fetch_threshold_basis
from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.runs.summary.summaries import build_summary
from oku_coordinator.watches.threshold_watch import SettledSeries, ThresholdWatch
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import OUTCOMES, Outcome, ReasonCount
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Part
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.results.event import EventType
from oku_core.results.sample import Sample, build_sample
from oku_core.spec.values.threshold import Threshold
from oku_core.summary.tick import Tick
from oku_core.thresholds.stretches import StretchValue
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_PASSED, _FAILED, _UNDECIDED = ThresholdVerdict


def build_seen(at: float, done: int = 0, **second: Any) -> Sample:
    """A second of the run as it was seen live."""
    figures: dict[str, Any] = {"outcomes": make_counts(), "requests_sent": 0, "in_flight": 0}
    return build_sample(
        at=at, seconds=1.0, requests_total=100, accounted=0, leased=0, pending=0, resent_at_most=0,
        workers=1, lag_s=0.0, times={Time.LATENCY: HistogramSnapshot()}, done=done, **(figures | second),
    )  # fmt: skip


class World:
    """A watch of the runs of a ledger, which has one run of 100 requests."""

    def __init__(self, ledger: Ledger, begin: Callable[..., Any], *thresholds: str) -> None:
        self.ledger, self.signals = ledger, CountingSignals()
        self.lease: LeaseRecord | None = None
        self.ended: dict[int, int] = {}
        self.sequence = 0
        begin(thresholds=tuple(map(Threshold, thresholds)))
        self.watch = self.build_watch()

    def build_watch(self) -> ThresholdWatch:
        """The watch of a coordinator that has just started."""
        return ThresholdWatch(self.ledger, self.signals, lambda: 5.0)

    def look(self, at: float = 4.0, record: RunRecord | None = None, **second: Any) -> list[ThresholdVerdict]:
        """What became of the thresholds in a second; the run is as it is now unless it is given."""
        sample = build_seen(at, **second)
        record = record or read(self.ledger, fetch_run, "r1")
        tick = self.watch.judge(record, Tick(run="r1", state=record.state, sample=sample))
        return [threshold.verdict for threshold in tick.thresholds]

    def end_in(
        self, ended: Mapping[int, int], told_to: float, in_flight: int = 0, *, is_final: bool = False
    ) -> None:
        """So many requests end in each of some seconds, as the worker tells that has all of them."""
        self.lease = self.lease or deal_lease(self.ledger, "r1", 100, 2.0)
        assert self.lease is not None
        self.ended |= ended
        self.sequence += 1
        total = sum(self.ended.values())
        seconds = {second: make_counts(count) for second, count in self.ended.items()}
        checkpoint = build_checkpoint(
            self.lease,
            total + in_flight,
            range(total, total + in_flight),
            parts=[msgspec.structs.replace(build_part(total), per_second=seconds)],
            is_final=is_final,
            sequence=self.sequence,
        )
        batch = build_batch(self.lease, checkpoint, told_to=told_to)
        [receipt] = change(self.ledger, fold_batches, [batch], lambda *_: 0, told_to + 0.1)
        self.watch.settled.record_receipt(receipt)

    def summarize(self) -> list[ThresholdVerdict]:
        """What the summary says of the thresholds."""
        summary = build_summary(read(self.ledger, fetch_snapshot, "r1"), 9.0)
        return [threshold.verdict for threshold in summary.thresholds]

    @property
    def lost(self) -> list[str]:
        """The events of thresholds that were lost."""
        events = read(self.ledger, fetch_history, "r1").events
        return [event.text for event in events if event.type is EventType.THRESHOLD_LOST]


@pytest.fixture
def build_world(ledger: Ledger, begin_run: Callable[..., Any]) -> Callable[..., World]:
    """Builds a world with a run that has these thresholds."""
    return lambda *thresholds: World(ledger, begin_run, *thresholds)


@pytest.fixture
def answer(deal: Deal, make_batch: MakeBatch, apply: Callable[..., Any]) -> Callable[..., None]:
    """So many requests are ok within a millisecond, and so many take too long."""

    def answer(ok: int = 0, timeouts: int = 0) -> None:
        part = build_part(ok) if ok else Part(outcomes=make_counts())
        counts = make_counts(ok, timeout=timeouts)
        gained = Part(
            outcomes=counts,
            statuses=part.statuses,
            bytes_received=part.bytes_received,
            times={Time.LATENCY: part.histogram(Time.LATENCY)},
            per_second={3: counts},
            reasons=[ReasonCount(OUTCOMES.index(Outcome.TIMEOUT), "no answer", timeouts, 0, timeouts - 1)]
            if timeouts
            else [],
        )
        apply([make_batch(deal(ok + timeouts), parts=[gained])], 4.0)

    return answer


def test_a_threshold_is_lost_as_soon_as_too_many_requests_count_against_it(
    build_world: Callable[..., World], answer: Callable[..., None]
) -> None:
    """It is kept, with one event, and the run goes on unless it says `abort`."""
    world = build_world("ok >= 90%", "p50 < 5ms")
    answer(timeouts=10)
    assert world.look() == [_UNDECIDED, _UNDECIDED]
    answer(timeouts=1)
    assert world.look() == [_FAILED, _UNDECIDED]
    assert world.look() == [_FAILED, _UNDECIDED]

    assert world.lost == ["threshold lost: ok >= 90%"]
    assert read(world.ledger, fetch_run, "r1").state is RunState.RUNNING
    assert world.summarize() == [_FAILED, _UNDECIDED]


def test_a_threshold_is_won_as_soon_as_the_rest_cannot_spoil_it(
    build_world: Callable[..., World], answer: Callable[..., None]
) -> None:
    """Half of the requests are enough for a median."""
    world = build_world("p50 < 5ms", "ok >= 51")
    answer(ok=50)
    assert world.look() == [_PASSED, _UNDECIDED]
    assert world.summarize() == [_PASSED, _UNDECIDED]


def test_a_run_that_is_to_abort_ends_as_a_cancelled_one_does(
    build_world: Callable[..., World], answer: Callable[..., None]
) -> None:
    """The reason stays with it when nothing is out any more, and it cannot be resumed."""
    world = build_world("max < 5ms: abort", "ok >= 1%")
    answer(ok=20, timeouts=1)
    assert world.look() == [_FAILED, _PASSED]
    record = read(world.ledger, fetch_run, "r1")
    assert (record.state, record.reason) == (RunState.CANCELLED, "threshold lost: max < 5ms: abort")
    assert world.signals.wakes == 1
    assert world.summarize() == [_FAILED, _PASSED]


def test_a_run_that_has_ended_meanwhile_is_not_ended_by_a_threshold(
    build_world: Callable[..., World], answer: Callable[..., None]
) -> None:
    """Checkpoints are taken in beside the tick: the last one may come within it."""
    world = build_world("max < 5ms: abort")
    before = read(world.ledger, fetch_run, "r1")
    answer(ok=99, timeouts=1)
    assert read(world.ledger, fetch_run, "r1").state is RunState.COMPLETED
    assert world.look(record=before) == [_FAILED]
    assert (read(world.ledger, fetch_run, "r1").state, world.signals.wakes) == (RunState.COMPLETED, 0)


def test_a_lost_threshold_ends_the_run_also_after_a_crash_of_the_coordinator(
    build_world: Callable[..., World], answer: Callable[..., None]
) -> None:
    """The ledger has the loss before the run is ended."""
    world = build_world("max < 5ms: abort")
    answer(timeouts=1)
    change(world.ledger, record_lost_threshold, "r1", 0, 4.5, "threshold lost: max < 5ms: abort")
    world.watch = world.build_watch()

    assert world.look() == [_FAILED]
    assert read(world.ledger, fetch_run, "r1").state is RunState.CANCELLED
    assert len(world.lost) == 1


def test_some_seconds_in_a_row_lose_a_threshold_and_the_worst_of_them_is_kept(
    build_world: Callable[..., World], ledger: Ledger
) -> None:
    """It is kept where it was lost first; one that was never full keeps how long its row was."""
    world = build_world("rate >= 7/s over 2s", "rate >= 3/s over 2s", "rate >= 3/s over 1m")
    world.end_in({3: 1, 4: 1, 5: 9, 6: 9, 7: 5, 8: 4, 9: 8}, told_to=10.2)

    assert world.look(11.0) == [_FAILED, _UNDECIDED, _UNDECIDED]
    assert world.lost == ["threshold lost: rate >= 7/s over 2s"]
    kept = read(ledger, fetch_threshold_basis, "r1").thresholds
    loss = StretchValue(4.5, holds=False, clock_s=6.0)
    assert kept == {
        0: ThresholdRecord(5.0, 4.5, loss, 2.0),
        1: ThresholdRecord(None, 4.5, None, 2.0),
        2: ThresholdRecord(None, None, None, 5.0),
    }
    summary = build_summary(read(ledger, fetch_snapshot, "r1"), 12.0).thresholds[0]
    assert (summary.lost_s, summary.lost_phase, summary.lost_value) == (6.0, "", 4.5)


def test_a_watch_that_begins_in_the_middle_finds_the_same(
    build_world: Callable[..., World], ledger: Ledger
) -> None:
    """The series has the seconds for which no coordinator was there."""
    world = build_world("rate >= 5/s over 2s: abort", "rate >= 9/s over 2s")
    world.end_in({3: 1, 4: 1, 5: 9, 6: 9, 7: 5, 8: 9}, told_to=9.2)
    world.look(9.0)
    before = read(ledger, fetch_threshold_basis, "r1").thresholds
    world.watch = world.build_watch()
    world.end_in({9: 1, 10: 1, 11: 9}, told_to=11.2)

    assert world.look(12.0) == [_FAILED, _FAILED]
    kept = read(ledger, fetch_threshold_basis, "r1").thresholds
    assert kept[1].loss == before[1].loss == StretchValue(7.0, holds=False, clock_s=5.0)
    assert kept[0].loss == StretchValue(1.0, holds=False, clock_s=8.0)
    assert read(ledger, fetch_run, "r1").state is RunState.CANCELLING


def test_seconds_that_workers_may_still_tell_of_lose_nothing(build_world: Callable[..., World]) -> None:
    """A worker whose messages are under way has sent what nobody knows yet."""
    world = build_world("rate >= 5/s over 1s: abort")
    world.end_in(dict.fromkeys(range(3, 7), 9), told_to=7.2)
    assert [world.look(at) for at in (9.0, 20.0)] == [[_UNDECIDED]] * 2
    world.end_in({8: 9}, told_to=9.1)
    assert world.look(21.0) == [_FAILED]


def test_the_end_of_a_run_is_no_stretch_that_could_lose(build_world: Callable[..., World]) -> None:
    """Nothing is left to be sent then, only answers are outstanding."""
    world = build_world("rate >= 5/s over 1s: abort", "ok >= 100% over 1s: abort")
    world.end_in(dict.fromkeys(range(3, 12), 9), told_to=12.0)
    assert world.look(12.0) == [_UNDECIDED] * 2
    world.end_in({13: 1}, told_to=18.0, in_flight=18)
    assert world.look(18.0, done=82, in_flight=18) == [_UNDECIDED] * 2
    assert read(world.ledger, fetch_run, "r1").state is RunState.RUNNING


@pytest.mark.parametrize(("busy_to", "verdict"), [(11.0, _PASSED), (12.0, _PASSED), (13.0, _FAILED)])
def test_the_last_seconds_are_judged_when_the_run_is_over(
    build_world: Callable[..., World], ledger: Ledger, busy_to: float, verdict: ThresholdVerdict
) -> None:
    """As far as a sample has shown that requests were left: nobody has looked at them before."""
    world = build_world("rate >= 8/s over 6s")
    world.end_in(dict.fromkeys(range(3, 12), 9) | {12: 1, 13: 18}, told_to=15.0, is_final=True)
    assert read(ledger, fetch_run, "r1").state is RunState.COMPLETED
    for at, done in ((busy_to + 1, 99), (busy_to + 2, 100)):
        change(ledger, keep_second, "r1", build_seen(at, done))
    assert world.summarize() == [verdict]


def test_a_run_that_waits_for_its_setup_or_its_workers_loses_nothing(
    build_world: Callable[..., World],
) -> None:
    """Its clock does not go on before something is sent."""
    world = build_world("rate >= 5/s over 1s: abort", "ok >= 1 over 1s: abort", "p50 < 1s over 1s: abort")
    verdicts = [world.look(float(at), outcomes=make_counts(timeout=3)) for at in range(4, 20)]
    assert verdicts == [[_UNDECIDED] * 3] * 16
    assert read(world.ledger, fetch_run, "r1").state is RunState.RUNNING


def test_a_time_that_is_worse_than_any_can_be_kept(build_world: Callable[..., World]) -> None:
    """A quantile may lie among requests without an answer; JSON has no number for that."""
    world = build_world("p50 < 1s over 1s")
    world.end_in({3: 1}, told_to=4.0)
    for at in range(4, 8):
        world.look(at, outcomes=make_counts(timeout=3))
    assert world.summarize() == [_FAILED]
    basis = read(world.ledger, fetch_threshold_basis, "r1")
    assert basis.thresholds[0].worst == math.inf
    summary = build_summary(read(world.ledger, fetch_snapshot, "r1"), 9.0)
    threshold = summary.thresholds[0]
    assert (threshold.value, threshold.lost_value, threshold.lost_s) == (None, None, 3.0)


NOW = 50.0


def build_lease(worker: int = 1, **known: Any) -> LeaseRecord:
    """An open lease of a process `bN`."""
    return LeaseRecord(
        id=f"l{worker}", run="r1", ranges=IndexRanges([(0, 100)]), worker=f"w{worker}",
        incarnation=f"b{worker}", cut_at=2.0, limit=100, end=100, reported_end=100, **known,
    )  # fmt: skip


def build_receipt(
    told_to: float, worker: int = 1, verdict: MessageVerdict = MessageVerdict.ACCOUNTED
) -> Receipt:
    """What was made of a message of a process."""
    lease = build_lease(worker)
    batch = build_batch(lease, build_checkpoint(lease), told_to=told_to)
    return Receipt(batch=batch, verdicts=[verdict])


def build_progress(taken: int | None, ok: int = 0, coordinator_at: float | None = None) -> Progress:
    """What the process `b1` says at 20 s of its lease; None if it does not name it."""
    leases = {} if taken is None else {"l1": LeaseProgress(taken, 100, make_counts(ok))}
    return Progress(worker="w1", incarnation="b1", at=20.0, leases=leases, coordinator_at=coordinator_at)


def test_without_leases_nobody_has_anything_to_tell() -> None:
    """All that was sent is accounted."""
    assert SettledSeries().find_end([], NOW) == NOW


def test_the_one_who_is_furthest_behind_counts() -> None:
    """Of those that have leases; a message that comes later does not take back what an earlier one told."""
    told = SettledSeries()
    for receipt in (build_receipt(12.0), build_receipt(14.0, 2), build_receipt(11.0), build_receipt(3.0, 3)):
        told.record_receipt(receipt)
    assert told.find_end([build_lease(1), build_lease(2)], NOW) == 12.0
    assert told.find_end([build_lease(2)], NOW) == 14.0


def test_of_a_worker_that_has_told_nothing_nobody_knows_anything() -> None:
    """A coordinator that has just started waits for all of them; one that is gone is not known any more."""
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0))
    assert told.find_end([build_lease(1), build_lease(2)], NOW) == -math.inf
    told.forget("b1")
    assert told.find_end([build_lease(1)], NOW) == -math.inf


@pytest.mark.parametrize(
    ("verdict", "told_to"), [(MessageVerdict.REPEATED, 12.0), (MessageVerdict.UNTRUE, -math.inf)]
)
def test_what_the_ledger_does_not_have_was_not_told(verdict: MessageVerdict, told_to: float) -> None:
    """A copy says nothing new, but it is true."""
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0, verdict=verdict))
    assert told.find_end([build_lease()], NOW) == told_to


@pytest.mark.parametrize(
    ("taken", "ok", "told_to"), [(30, 20, 20.0), (31, 20, 12.0), (30, 21, 12.0), (None, 0, 12.0)]
)
def test_who_has_no_news_tells_so_with_its_progress(taken: int | None, ok: int, told_to: float) -> None:
    """All that it has taken, and all that has ended, is in the ledger.

    Of a target that does not answer, nothing else says so.
    """
    told = SettledSeries()
    told.record_receipt(build_receipt(12.0))
    told.record_progress(build_progress(taken, ok))
    assert told.find_end([build_lease(done=30, outcomes=make_counts(20), sequence=3)], NOW) == told_to


def test_a_lease_that_nobody_has_begun_has_nothing_to_tell() -> None:
    """Its message may still be under way."""
    told = SettledSeries()
    told.record_progress(build_progress(None))
    assert told.find_end([build_lease()], NOW) == 20.0


def test_the_clock_that_is_behind_counts() -> None:
    """What was sent is counted by the coordinator's, what has ended by that of the worker's machine."""
    for coordinator_at, told_to in ((19.0, 19.0), (21.0, 20.0)):
        told = SettledSeries()
        told.record_progress(build_progress(0, coordinator_at=coordinator_at))
        assert told.find_end([build_lease()], NOW) == told_to
