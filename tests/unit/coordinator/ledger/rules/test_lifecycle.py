from collections.abc import Callable
from pathlib import Path

import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import fail
from oku_coordinator.ledger.storage.records import LeaseRecord, RunRecord
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import FINAL_STATES, RunState, TransitionError
from oku_core.messaging.lease import Claim, Report
from oku_core.spec.spec import Spec

Begin = Callable[..., RunRecord]
Cut = Callable[..., LeaseRecord]
MakeClaim = Callable[..., Claim]
MakeReport = Callable[..., Report]


def test_a_run_takes_only_the_ways_that_the_table_has(ledger: Ledger) -> None:
    """Any other transition is refused by name, and changes nothing."""
    ledger.runs.create("r1", Spec(requests=10), 0.0)
    with pytest.raises(TransitionError, match="run r1 is pending, it cannot become pausing"):
        ledger.runs.change_state("r1", RunState.PAUSING, 1.0)
    assert ledger.runs.fetch("r1").state == RunState.PENDING


def test_a_reason_is_kept_until_the_next_state(ledger: Ledger) -> None:
    """The reason says why a run is in its state."""
    ledger.runs.create("r1", Spec(requests=10), 0.0)
    assert ledger.runs.change_state("r1", RunState.PAUSED, 1.0, "a reason").reason == "a reason"
    assert ledger.runs.change_state("r1", RunState.PENDING, 2.0).reason == ""


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_with_nothing_out_rests_at_once(
    ledger: Ledger, begin_run: Begin, closing: RunState, closed: RunState
) -> None:
    """There is no worker to wait for."""
    begin_run()
    assert ledger.runs.change_state("r1", closing, 2.0).state == closed


@pytest.mark.parametrize(
    ("closing", "closed"),
    [(RunState.PAUSING, RunState.PAUSED), (RunState.CANCELLING, RunState.CANCELLED)],
)
def test_a_run_rests_with_the_last_report(
    ledger: Ledger, cut: Cut, make_report: MakeReport, closing: RunState, closed: RunState
) -> None:
    """What was in flight is accounted first, and the rest of the lease is given back."""
    first, second = cut(), cut()
    assert ledger.runs.change_state("r1", closing, 4.0).state == closing
    ledger.leases.apply([make_report(first, done=4)], 5.0)
    assert ledger.runs.fetch("r1").state == closing
    ledger.leases.apply([make_report(second, done=second.start + 3)], 6.0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.accounted) == (closed, 7)
    assert record.ended_at == (6.0 if closed in FINAL_STATES else None)


@pytest.mark.parametrize("closing", [RunState.PAUSING, RunState.CANCELLING])
def test_a_run_that_is_stopped_right_at_its_end_is_completed(
    ledger: Ledger, cut: Cut, make_report: MakeReport, closing: RunState
) -> None:
    """Nothing was left to stop, and it cannot be stopped after that."""
    lease = cut(100)
    ledger.runs.change_state("r1", closing, 4.0)
    ledger.leases.apply([make_report(lease)], 5.0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.ended_at) == (RunState.COMPLETED, 5.0)
    with pytest.raises(TransitionError, match="run r1 is completed"):
        ledger.runs.change_state("r1", closing, 6.0)


def test_a_pausing_run_can_still_be_cancelled(ledger: Ledger, cut: Cut, make_report: MakeReport) -> None:
    """Its last report then ends it for good."""
    lease = cut()
    ledger.runs.change_state("r1", RunState.PAUSING, 3.0)
    ledger.runs.change_state("r1", RunState.CANCELLING, 4.0)
    ledger.leases.apply([make_report(lease, done=lease.start)], 5.0)
    assert ledger.runs.fetch("r1").state == RunState.CANCELLED


def test_a_run_that_is_resumed_goes_on_where_it_stood(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Only requests that are not accounted are leased again."""
    lease = cut(50)
    ledger.runs.change_state("r1", RunState.PAUSING, 3.0)
    ledger.leases.apply([make_report(lease, done=40, unfinished=[5])], 5.0)
    ledger.runs.change_state("r1", RunState.PENDING, 6.0)
    ledger.runs.change_state("r1", RunState.RUNNING, 7.0)
    again = [cut(1000), cut(1000)]
    assert [(lease.start, lease.stop) for lease in again] == [(5, 6), (40, 100)]
    ledger.leases.apply([make_report(lease) for lease in again], 9.0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.accounted, record.resent_at_most) == (RunState.COMPLETED, 100, 1)


def test_a_run_that_is_over_does_not_fail_any_more(ledger: Ledger, cut: Cut, make_report: MakeReport) -> None:
    """It stays as it is, whatever is found out about it later."""
    ledger.leases.apply([make_report(cut(100))], 5.0)
    before = ledger.runs.fetch("r1")
    ledger.file.change(lambda transaction: fail(transaction, "r1", "a reason", 9.0))
    assert ledger.runs.fetch("r1") == before
    assert before.state == RunState.COMPLETED


def test_only_the_time_between_first_claim_and_rest_is_activity(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """The waits for workers, for the end of a pause and for the next turn do not count."""
    lease = cut()
    assert ledger.runs.fetch("r1").measure_active_s(3.0) == 0.0
    ledger.leases.apply([make_claim(lease, at=4.0)], 4.0)
    assert ledger.runs.fetch("r1").measure_active_s(9.0) == 5.0
    ledger.runs.change_state("r1", RunState.PAUSING, 10.0)
    ledger.leases.apply([make_report(lease)], 14.0)
    assert ledger.runs.fetch("r1").measure_active_s(99.0) == 10.0
    ledger.runs.change_state("r1", RunState.PENDING, 100.0)
    ledger.runs.change_state("r1", RunState.RUNNING, 200.0)
    assert ledger.runs.fetch("r1").measure_active_s(250.0) == 10.0
    lease = cut(90, now=300.0)
    ledger.leases.apply([make_claim(lease, at=300.0)], 300.0)
    ledger.leases.apply([make_report(lease)], 305.0)
    record = ledger.runs.fetch("r1")
    assert (record.state, record.active_s, record.active_since) == (RunState.COMPLETED, 15.0, None)
    assert (record.started_at, record.windows) == (4.0, 2)


def test_all_claims_of_a_window_open_it_once(ledger: Ledger, cut: Cut, make_claim: MakeClaim) -> None:
    """Two workers that begin open one window."""
    first, second = cut(), cut()
    ledger.leases.apply([make_claim(first, at=3.0), make_claim(second, execution="e2", at=2.5)], 5.0)
    record = ledger.runs.fetch("r1")
    assert (record.active_since, record.windows) == (3.0, 1)


def test_a_coordinator_that_comes_back_finds_the_window_open(
    ledger: Ledger, path: Path, cut: Cut, make_claim: MakeClaim, make_report: MakeReport
) -> None:
    """The workers have gone on without it."""
    lease = cut(100)
    ledger.leases.apply([make_claim(lease)], 3.0)
    again = Ledger(path)
    again.leases.apply([make_report(lease)], 63.0)
    assert (again.runs.fetch("r1").active_s, again.runs.fetch("r1").windows) == (60.0, 1)
    again.close()


def test_a_clock_that_was_set_back_does_not_take_activity_away(
    ledger: Ledger, cut: Cut, make_claim: MakeClaim
) -> None:
    """The window is empty then, not negative."""
    lease = cut()
    ledger.leases.apply([make_claim(lease)], 5.0)
    assert ledger.runs.fetch("r1").measure_active_s(1.0) == 0.0
    ledger.runs.change_state("r1", RunState.PAUSING, 1.0)
    ledger.leases.expire([lease.id], ExpiryReason.REPORT_LOST, 1.0)
    assert ledger.runs.fetch("r1").active_s == 0.0
