import pytest
from tests.kit.coordinators.leases import (
    Apply,
    BeginRun,
    Deal,
    MakeBatch,
    build_batch,
    build_checkpoint,
    expire,
    shorten_to_limits,
)
from tests.kit.coordinators.transactions import change as change_ledger
from tests.kit.coordinators.transactions import check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.leases.expiring import find_nothing, lower_resent_of_dead
from oku_coordinator.ledger.rules.leases.intake import fold_batches
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases, fetch_taken_back
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.summary.validity import Flag

RECORDED = {
    None: [(2, 3), (8, 9), (10, 15)],
    0: [(2, 3), (8, 9)],
    12: [(2, 3), (8, 9), (10, 12)],
    15: [(2, 3), (8, 9), (10, 15)],
    99: [(2, 3), (8, 9), (10, 15)],
}
"""What may have been sent again of a lease whose limit is 15, by what its dead worker has reached.

The positions 2 and 8 are in flight, and none from 10 on is known to be taken.
"""


@pytest.mark.parametrize("reached", RECORDED)
@pytest.mark.parametrize("is_late", [False, True])
def test_a_dead_worker_has_not_sent_what_it_has_not_reached(
    ledger: Ledger, deal: Deal, reached: int | None, *, is_late: bool
) -> None:
    """Whether that is known when its lease is taken back, or later; a record never adds to the bound."""
    lease = deal(20, limit=15)
    checkpoint = build_checkpoint(lease, 10, [2, 8], is_final=False)
    change_ledger(ledger, fold_batches, [build_batch(lease, checkpoint)], lambda _batch, _spec: 0, 4.0)
    resent = sum(stop - start for start, stop in RECORDED[reached])

    def find(_: LeaseRecord) -> int | None:
        return reached

    known = () if is_late else (find,)
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 7.0, find_nothing, *known)
    if is_late:
        assert read(ledger, fetch_run, "r1").resent_at_most == 7
        assert change_ledger(ledger, lower_resent_of_dead, "r1", ["b1"], find) == 7 - resent
        assert change_ledger(ledger, lower_resent_of_dead, "r1", ["b1"], find) == 0
    assert read(ledger, fetch_run, "r1").resent_at_most == resent
    assert read(ledger, fetch_taken_back, "r1") == RECORDED[reached]
    assert check_ledger(ledger, "r1") == Lengths(pending=92, leased=0, accounted=8)


def test_what_a_run_at_rest_says_of_its_dead_stays(ledger: Ledger, deal: Deal) -> None:
    """Its summary was read by then."""
    lease = deal(20)
    expire(ledger, [lease.id], ExpiryReason.WORKER_LOST, 5.0)
    change_ledger(ledger, change_state, "r1", RunState.PAUSING, 6.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSED
    assert change_ledger(ledger, lower_resent_of_dead, "r1", ["b1"], lambda _: 0) == 0
    assert read(ledger, fetch_run, "r1").resent_at_most == 20


def test_a_lost_worker_is_known_by_name_and_flag(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """What it had done before stays in the account; the flag says how much others have to do."""
    done, lost = deal(), deal()
    apply([make_batch(done), make_batch(lost, done=3, is_final=False)], 4.0)
    expire(ledger, [lost.id], ExpiryReason.WORKER_LOST, 5.0)
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert [(worker.name, worker.requests, worker.lost) for worker in snapshot.workers] == [("w1", 13, True)]
    assert snapshot.flags == [(Flag.WORKER_LOST, 7, 0.0)]
    event = read(ledger, fetch_history, "r1").events[-1]
    assert (event.worker, event.lease, event.requests) == ("w1", lost.id, 7)
    assert event.text == "7 requests between 10 and 19 were taken back from worker w1: worker lost"


def test_a_lease_of_several_ranges_is_shortened_within_one_of_them(ledger: Ledger, deal: Deal) -> None:
    """Ranges behind the one with the limit are pending again as they were."""
    holed = deal(100)
    change_ledger(
        ledger,
        fold_batches,
        [build_batch(holed, build_checkpoint(holed, 100, [*range(10, 20), 40, *range(60, 70)]))],
        lambda _batch, _spec: 0,
        3.0,
    )
    again = deal(100, limit=5)
    assert again.ranges.ranges == ((10, 20), (40, 41), (60, 70))
    (shorter,) = shorten_to_limits(ledger, [again.id], 4.0)
    assert (shorter.end, shorter.length) == (5, 21)
    leased = [piece for piece in read(ledger, fetch_slices, "r1") if piece.state == SliceState.LEASED]
    assert leased == [Slice(10, 15, SliceState.LEASED)]
    assert check_ledger(ledger, "r1").pending == 16


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_that_stops_rests_when_its_last_lease_is_taken_back(
    ledger: Ledger, deal: Deal, closing: RunState, closed: RunState
) -> None:
    """It does not wait for a worker that is dead."""
    first, second = deal(), deal()
    change_ledger(ledger, change_state, "r1", closing, 4.0)
    expire(ledger, [first.id], ExpiryReason.WORKER_LOST, 5.0)
    assert read(ledger, fetch_run, "r1").state == closing
    expire(ledger, [second.id], ExpiryReason.WORKER_LOST, 6.0)
    assert read(ledger, fetch_run, "r1").state == closed


# Runs whose stack was killed


def test_a_run_whose_stack_was_killed_is_paused(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Nobody has its leases any more; what was accounted stays."""
    done, out = deal(), deal()
    apply([make_batch(done), make_batch(out, done=2, is_final=False)], 4.0)
    pause_interrupted(ledger, 1000.0)
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.reason) == (RunState.PAUSED, ExpiryReason.STACK_LOST)
    assert (record.accounted, record.resent_at_most) == (12, 8)
    assert read(ledger, fetch_open_leases, "r1") == []


@pytest.mark.parametrize(
    "closing", [RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING], ids=lambda state: state.value
)
def test_the_activity_of_a_killed_stack_ends_with_the_last_checkpoint(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, closing: RunState
) -> None:
    """Days may lie between, in which nothing was sent, whatever the run was about to do."""
    done, out = deal(), deal()
    apply([make_batch(done), make_batch(out, done=0, is_final=False)], 8.0)
    if closing != RunState.RUNNING:
        change_ledger(ledger, change_state, "r1", closing, 9.0)
    pause_interrupted(ledger, 100_000.0)
    record = read(ledger, fetch_run, "r1")
    assert record.state == (RunState.CANCELLED if closing == RunState.CANCELLING else RunState.PAUSED)
    assert (record.active_s, record.active_since) == (5.0, None)


def test_a_killed_stack_without_a_checkpoint_was_not_active(ledger: Ledger, deal: Deal) -> None:
    """Nothing is accounted for that time, so it would only spoil the rate."""
    deal()
    pause_interrupted(ledger, 100_000.0)
    assert read(ledger, fetch_run, "r1").active_s == 0.0


def test_a_run_that_was_resumed_and_killed_has_two_periods(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The first lasted until its pause, the second until the last checkpoint."""
    lease = deal()
    apply([make_batch(lease)], 8.0)
    change_ledger(ledger, change_state, "r1", RunState.PAUSING, 10.0)
    change_ledger(ledger, change_state, "r1", RunState.PENDING, 20.0)
    change_ledger(ledger, change_state, "r1", RunState.RUNNING, 21.0)
    apply([make_batch(deal(now=22.0), started_at=23.0, is_final=False)], 24.0)
    assert read(ledger, fetch_run, "r1").periods == 2
    pause_interrupted(ledger, 100_000.0)
    assert read(ledger, fetch_run, "r1").active_s == 7.0 + 1.0


def test_the_run_that_goes_on_keeps_its_state_and_loses_its_leases(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The time without a stack is no activity of it either."""
    done, out = deal(), deal()
    apply([make_batch(done), make_batch(out, done=0, is_final=False)], 8.0)
    pause_interrupted(ledger, 100_000.0, but="r1")
    record = read(ledger, fetch_run, "r1")
    assert (record.state, record.active_s, record.active_since) == (RunState.RUNNING, 5.0, None)
    assert read(ledger, fetch_open_leases, "r1") == []
    apply([make_batch(deal(now=100_002.0), started_at=100_003.0, is_final=False)], 100_004.0)
    assert read(ledger, fetch_run, "r1").measure_active_s(100_013.0) == 15.0


def test_runs_at_rest_are_left_alone(
    ledger: Ledger, begin_run: BeginRun, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """A completed, a cancelled, a failed and a paused run are the same after it."""
    for run in ("completed", "cancelled", "failed", "paused"):
        begin_run(run, 10)
    apply([make_batch(deal(run="completed"))], 3.0)
    change_ledger(ledger, change_state, "cancelled", RunState.CANCELLING, 4.0)
    deal(run="failed")
    change_ledger(ledger, change_state, "failed", RunState.FAILED, 4.0, "a reason")
    change_ledger(ledger, change_state, "paused", RunState.PAUSING, 4.0)
    before = read(ledger, fetch_runs)
    assert {record.run: record.state for record in before} == {
        "completed": RunState.COMPLETED,
        "cancelled": RunState.CANCELLED,
        "failed": RunState.FAILED,
        "paused": RunState.PAUSED,
    }
    pause_interrupted(ledger, 9.0)
    assert read(ledger, fetch_runs) == before
