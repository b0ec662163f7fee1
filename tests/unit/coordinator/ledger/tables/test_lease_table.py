from collections.abc import Callable

import pytest
from tests.kit.coordinators.leases import deal_lease

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord, RunRecord
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim, Report
from oku_core.spec.spec import Spec

Begin = Callable[..., RunRecord]
Cut = Callable[..., LeaseRecord]
MakeReport = Callable[..., Report]


def test_a_lease_takes_the_first_pending_indices(ledger: Ledger, cut: Cut) -> None:
    """It is active, nobody has it yet, and the rest stays pending."""
    lease = cut(30, now=7.0)
    assert (lease.run, lease.start, lease.stop, lease.length, lease.cut_at) == ("r1", 0, 30, 30, 7.0)
    assert lease.state == LeaseState.ACTIVE
    assert (lease.execution, lease.worker, lease.incarnation) == (None, None, None)
    slices = ledger.leases.fetch_slices("r1")
    assert slices == [Slice(0, 30, SliceState.LEASED), Slice(30, 100, SliceState.PENDING)]
    assert ledger.leases.count_pending("r1") == 70


def test_the_last_lease_is_as_large_as_what_is_left(ledger: Ledger, cut: Cut) -> None:
    """After it there is nothing to lease."""
    cut(99)
    assert cut(50).length == 1
    assert ledger.leases.count_pending("r1") == 0
    assert deal_lease(ledger, "r1", 50, 3.0) is None


def test_a_lease_does_not_reach_over_what_is_accounted(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Requests that were cut off are leased again one by one, in order, until the run is completed."""
    lease = cut(100)
    ledger.leases.apply([make_report(lease, done=60, unfinished=[3, 4, 50])], 5.0)
    again = [cut(1000) for _ in range(3)]
    assert [(lease.start, lease.stop) for lease in again] == [(3, 5), (50, 51), (60, 100)]
    ledger.leases.apply([make_report(lease) for lease in reversed(again)], 6.0)
    assert ledger.runs.fetch("r1").state == RunState.COMPLETED
    assert ledger.leases.fetch_slices("r1") == [Slice(0, 100, SliceState.ACCOUNTED)]


def test_a_lease_has_a_name_of_its_own_that_nobody_can_guess(ledger: Ledger, cut: Cut) -> None:
    """A range that is given out again gets another id, part of which is random."""
    first = cut(100)
    ledger.leases.expire([first.id], ExpiryReason.NOT_CLAIMED, 3.0)
    second = cut(100)
    assert first.id != second.id
    assert first.id.rpartition(".")[0] == "r1.000000001"
    assert second.id.rpartition(".")[0] == "r1.000000002"
    assert len({lease.id.rpartition(".")[2] for lease in (first, second)}) == 2


def lead_to(ledger: Ledger, state: RunState, lease: LeaseRecord) -> None:
    """Bring a running run that has one active lease into another state."""
    if state in (RunState.PENDING, RunState.PAUSED, RunState.CANCELLED):
        ledger.leases.expire([lease.id], ExpiryReason.NOT_CLAIMED, 4.0)
    steps = {
        RunState.PENDING: [RunState.PAUSING, RunState.PENDING],
        RunState.PAUSED: [RunState.PAUSING],
        RunState.CANCELLED: [RunState.CANCELLING],
    }
    for step in steps.get(state, [state]):
        ledger.runs.change_state("r1", step, 5.0)
    assert ledger.runs.fetch("r1").state == state


@pytest.mark.parametrize(
    "state",
    [
        RunState.PENDING,
        RunState.PAUSING,
        RunState.PAUSED,
        RunState.CANCELLING,
        RunState.CANCELLED,
        RunState.FAILED,
    ],
)
def test_nothing_is_leased_of_a_run_that_is_not_running(ledger: Ledger, cut: Cut, state: RunState) -> None:
    """The dispatcher may act on a state that has just changed."""
    lead_to(ledger, state, cut())
    before = ledger.leases.fetch_slices("r1")
    assert ledger.leases.count_pending("r1") > 0
    assert deal_lease(ledger, "r1", 10, 6.0) is None
    assert ledger.leases.fetch_slices("r1") == before


def test_the_leases_that_are_out_are_listed(
    ledger: Ledger, cut: Cut, make_claim: Callable[..., Claim], make_report: MakeReport
) -> None:
    """The list has neither reported leases nor those of other runs, and says who has each."""
    reported, late, early = cut(now=2.0), cut(now=5.0), cut(now=4.0)
    ledger.leases.apply([make_report(reported), make_claim(early)], 6.0)
    ledger.runs.create("r2", Spec(requests=1), 0.0)
    leases = ledger.leases.fetch_active("r1")
    leases.sort(key=lambda lease: lease.cut_at)
    assert [lease.id for lease in leases] == [early.id, late.id]
    assert [(lease.execution, lease.worker, lease.incarnation) for lease in leases] == [
        ("e1", "w1", "b1"),
        (None, None, None),
    ]
    assert ledger.leases.fetch_active("r2") == []


def test_a_lease_is_void_when_it_was_taken_back_or_its_run_has_failed(
    ledger: Ledger, cut: Cut, make_report: MakeReport
) -> None:
    """Nobody waits for a void lease; an active or reported one is not void."""
    expired, active, reported, other = cut(), cut(), cut(), cut(run="r2")
    ledger.leases.expire([expired.id], ExpiryReason.WORKER_LOST, 3.0)
    ledger.leases.apply([make_report(reported)], 4.0)
    names = [lease.id for lease in (expired, active, reported, other)] + ["unknown", "\ud800"]
    assert ledger.leases.find_void(names) == [expired.id]
    ledger.runs.change_state("r2", RunState.FAILED, 5.0)
    assert sorted(ledger.leases.find_void(names)) == sorted([expired.id, other.id])
    assert ledger.leases.find_void([]) == []
