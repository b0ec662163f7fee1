from collections.abc import Callable

import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord, RunRecord
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim, Report
from oku_core.results.summary import Flag
from oku_core.spec.spec import Spec

Begin = Callable[..., RunRecord]
Cut = Callable[..., LeaseRecord]
MakeClaim = Callable[..., Claim]
MakeReport = Callable[..., Report]


@pytest.mark.parametrize("reason", [reason for reason in ExpiryReason if reason != ExpiryReason.NOT_SENT])
def test_a_lease_that_is_taken_back_is_pending_and_may_have_been_sent(
    ledger: Ledger, cut: Cut, reason: ExpiryReason
) -> None:
    """All of its requests count as resent once, however often it is taken back."""
    lease, other = cut(), cut()
    assert ledger.leases.expire([lease.id, lease.id], reason, 5.0) == [lease.id]
    assert ledger.leases.expire([lease.id, "unknown"], reason, 6.0) == []
    assert ledger.leases.fetch_slices("r1") == [
        Slice(0, 10, SliceState.PENDING),
        Slice(10, 20, SliceState.LEASED),
        Slice(20, 100, SliceState.PENDING),
    ]
    assert ledger.runs.fetch("r1").resent_at_most == 10
    assert [lease.id for lease in ledger.leases.fetch_active("r1")] == [other.id]


def test_a_lease_that_the_broker_did_not_take_was_not_sent(ledger: Ledger, cut: Cut) -> None:
    """Its range is pending again and nothing counts as resent."""
    lease = cut()
    assert ledger.leases.expire([lease.id], ExpiryReason.NOT_SENT, 5.0) == [lease.id]
    assert ledger.runs.fetch("r1").resent_at_most == 0
    assert ledger.leases.fetch_slices("r1") == [Slice(0, 100, SliceState.PENDING)]


def test_a_lease_that_somebody_has_was_sent(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """When its claim is quicker than the broker's error, the error was wrong."""
    lease = cut()
    ledger.leases.apply([make_claim(lease)], 4.0)
    assert ledger.leases.expire([lease.id], ExpiryReason.NOT_SENT, 5.0) == []
    assert ledger.leases.apply([make_report(lease)], 6.0) == [MessageVerdict.ACCOUNTED]
    assert ledger.runs.fetch("r1").resent_at_most == 0


def test_a_lost_worker_is_known_by_name_and_flag(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """What it had done before stays in the account."""
    done, lost = cut(), cut()
    ledger.leases.apply([make_report(done), make_claim(lost)], 4.0)
    ledger.leases.expire([lost.id], ExpiryReason.WORKER_LOST, 5.0)
    snapshot = ledger.runs.fetch_snapshot("r1")
    assert [(worker.name, worker.requests, worker.lost) for worker in snapshot.workers] == [("w1", 10, True)]
    assert snapshot.flags == [(Flag.WORKER_LOST, 10, 0.0)]


def test_a_reported_lease_is_not_taken_back(ledger: Ledger, cut: Cut, make_report: MakeReport) -> None:
    """It is accounted, once and for all."""
    lease = cut()
    ledger.leases.apply([make_report(lease)], 4.0)
    assert ledger.leases.expire([lease.id], ExpiryReason.REPORT_LOST, 5.0) == []
    assert ledger.check("r1").accounted == 10
    assert ledger.runs.fetch("r1").resent_at_most == 0


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_that_stops_rests_when_its_last_lease_is_taken_back(
    ledger: Ledger, cut: Cut, closing: RunState, closed: RunState
) -> None:
    """It does not wait for a worker that is dead."""
    first, second = cut(), cut()
    ledger.runs.change_state("r1", closing, 4.0)
    ledger.leases.expire([first.id], ExpiryReason.WORKER_LOST, 5.0)
    assert ledger.runs.fetch("r1").state == closing
    ledger.leases.expire([second.id], ExpiryReason.WORKER_LOST, 6.0)
    assert ledger.runs.fetch("r1").state == closed


# Runs whose stack was killed


def test_a_run_whose_stack_was_killed_is_paused(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """Nobody has its leases any more; what was accounted stays."""
    done, out = cut(), cut()
    ledger.leases.apply([make_report(done), make_claim(out)], 4.0)
    ledger.runs.park_interrupted(1000.0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.reason) == (RunState.PAUSED, ExpiryReason.STACK_LOST)
    assert (record.accounted, record.resent_at_most) == (10, 10)
    assert ledger.leases.fetch_active("r1") == []


def test_a_run_that_waited_when_its_stack_was_killed_is_paused_too(ledger: Ledger) -> None:
    """The stack that comes is for another run."""
    ledger.runs.create("r1", Spec(requests=10), 0.0)
    ledger.runs.park_interrupted(5.0)
    assert ledger.runs.fetch("r1").state == RunState.PAUSED


@pytest.mark.parametrize(
    "closing", [RunState.RUNNING, RunState.PAUSING, RunState.CANCELLING], ids=lambda state: state.value
)
def test_the_activity_of_a_killed_stack_ends_with_the_last_report(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport, closing: RunState
) -> None:
    """Days may lie between, in which nothing was sent, whatever the run was about to do."""
    done, out = cut(), cut()
    ledger.leases.apply([make_claim(done), make_report(done), make_claim(out)], 8.0)
    if closing != RunState.RUNNING:
        ledger.runs.change_state("r1", closing, 9.0)
    ledger.runs.park_interrupted(100_000.0)
    record = ledger.runs.fetch("r1")
    assert record.state == (RunState.CANCELLED if closing == RunState.CANCELLING else RunState.PAUSED)
    assert (record.active_s, record.active_since) == (5.0, None)


def test_a_killed_stack_without_a_report_was_not_active(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim
) -> None:
    """Nothing is accounted for that time, so it would only spoil the rate."""
    ledger.leases.apply([make_claim(cut())], 4.0)
    ledger.runs.park_interrupted(100_000.0)
    assert ledger.runs.fetch("r1").active_s == 0.0


def test_a_report_before_the_window_does_not_make_it_shorter_than_nothing(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """A run that was resumed and killed before its next report has been active until its pause."""
    lease = cut()
    ledger.leases.apply([make_claim(lease), make_report(lease)], 8.0)
    ledger.runs.change_state("r1", RunState.PAUSING, 10.0)
    ledger.runs.change_state("r1", RunState.PENDING, 20.0)
    ledger.runs.change_state("r1", RunState.RUNNING, 21.0)
    ledger.leases.apply([make_claim(cut(now=22.0), at=23.0)], 24.0)
    assert ledger.runs.fetch("r1").windows == 2
    ledger.runs.park_interrupted(100_000.0)
    assert ledger.runs.fetch("r1").active_s == 7.0


def test_the_run_that_goes_on_keeps_its_state_and_loses_its_leases(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """The time without a stack is no activity of it either."""
    done, out = cut(), cut()
    ledger.leases.apply([make_claim(done), make_report(done), make_claim(out)], 8.0)
    ledger.runs.park_interrupted(100_000.0, but="r1")
    record = ledger.runs.fetch("r1")
    assert (record.state, record.active_s, record.active_since) == (RunState.RUNNING, 5.0, None)
    assert ledger.leases.fetch_active("r1") == []
    ledger.leases.apply([make_claim(cut(now=100_002.0), at=100_003.0)], 100_004.0)
    assert ledger.runs.fetch("r1").measure_active_s(100_013.0) == 15.0


def test_runs_at_rest_are_left_alone(
    ledger: Ledger, begin_run: Begin, cut: Cut, make_report: MakeReport
) -> None:
    """A completed, a cancelled, a failed and a paused run are the same after it."""
    for run in ("completed", "cancelled", "failed", "paused"):
        begin_run(run, 10)
    ledger.leases.apply([make_report(cut(run="completed"))], 3.0)
    ledger.runs.change_state("cancelled", RunState.CANCELLING, 4.0)
    cut(run="failed")
    ledger.runs.change_state("failed", RunState.FAILED, 4.0, "a reason")
    ledger.runs.change_state("paused", RunState.PAUSING, 4.0)
    before = ledger.runs.fetch_page()
    assert {record.run: record.state for record in before} == {
        "completed": RunState.COMPLETED,
        "cancelled": RunState.CANCELLED,
        "failed": RunState.FAILED,
        "paused": RunState.PAUSED,
    }
    ledger.runs.park_interrupted(9.0)
    assert ledger.runs.fetch_page() == before
