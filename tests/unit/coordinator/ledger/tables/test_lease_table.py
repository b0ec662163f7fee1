from tests.kit.coordinators.leases import Apply, BeginRun, Deal, MakeBatch, expire
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases.closing import fetch_coverage
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.lease_records import LeaseOrder
from oku_coordinator.ledger.tables import lease_table
from oku_coordinator.ledger.tables.lease_table import count_held, fetch_fleet, fetch_held, fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import count_pending, fetch_slices
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec


def test_a_lease_takes_the_first_pending_indices(ledger: Ledger, deal: Deal) -> None:
    """It is open, its worker may take as much as its limit says, and the rest stays pending."""
    lease = deal(30, now=7.0, limit=12)
    assert (lease.run, lease.start, lease.stop, lease.length, lease.cut_at) == ("r1", 0, 30, 30, 7.0)
    assert lease.state == LeaseState.ACTIVE
    assert (lease.worker, lease.incarnation, lease.limit, lease.end) == ("w1", "b1", 12, 30)
    assert (lease.done, lease.sequence, lease.covered, lease.at_risk) == (0, 0, 0, 12)
    slices = read(ledger, fetch_slices, "r1")
    assert slices == [Slice(0, 30, SliceState.LEASED), Slice(30, 100, SliceState.PENDING)]
    assert read(ledger, count_pending, "r1") == 70


def test_leases_that_are_dealt_together_share_the_allowance_of_their_process(
    ledger: Ledger, begin_run: BeginRun
) -> None:
    """The first ones take it up."""
    begin_run(requests=100)
    orders = [LeaseOrder("w1", "b1", 6, 8), LeaseOrder("w2", "b2", 6, 9), *[LeaseOrder("w1", "b1", 6, 8)] * 2]
    leases = change(ledger, lease_table.deal_leases, "r1", orders, 2.0)
    assert [(lease.worker, lease.length, lease.limit) for lease in leases] == [
        ("w1", 6, 6), ("w2", 6, 6), ("w1", 6, 2), ("w1", 6, 0),
    ]  # fmt: skip


def test_a_lease_does_not_reach_over_what_is_accounted(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Requests that were cut off are leased again together, in order, until the run is completed."""
    lease = deal(100)
    apply([make_batch(lease, done=60, in_flight=[3, 4, 50])], 5.0)
    again = [deal(1), deal(3), deal(1000)]
    assert [lease.ranges.ranges for lease in again] == [((3, 4),), ((4, 5), (50, 51), (60, 61)), ((61, 100),)]
    apply([make_batch(lease) for lease in reversed(again)], 6.0)
    assert read(ledger, fetch_run, "r1").state == RunState.COMPLETED
    assert read(ledger, fetch_slices, "r1") == [Slice(0, 100, SliceState.ACCOUNTED)]


def test_a_lease_has_a_name_of_its_own_that_nobody_can_guess(ledger: Ledger, deal: Deal) -> None:
    """A range that is given out again gets another id, part of which is random."""
    first = deal(100)
    expire(ledger, [first.id], ExpiryReason.NOT_TAKEN, 3.0)
    second = deal(100)
    assert first.id != second.id
    assert first.id.rpartition(".")[0] == "r1.000000001"
    assert second.id.rpartition(".")[0] == "r1.000000002"
    assert len({lease.id.rpartition(".")[2] for lease in (first, second)}) == 2


def test_the_leases_that_are_out_are_listed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The list has neither closed leases nor those of other runs, and says who has each and how far it is."""
    closed, going, other = deal(), deal(), deal(worker="w2")
    apply([make_batch(closed), make_batch(going, done=3, is_final=False)], 6.0)
    change(ledger, create_run, "r2", Spec(requests=1), 0.0)
    leases = read(ledger, fetch_open_leases, "r1")
    assert [(lease.id, lease.worker, lease.done) for lease in leases] == [
        (going.id, "w1", 3),
        (other.id, "w2", 0),
    ]
    assert read(ledger, fetch_fleet, "r1") == {"b1": leases[:1], "b2": leases[1:]}
    assert read(ledger, fetch_held, "r1", ["b2", "b3"]) == {"b2": leases[1:], "b3": []}
    assert read(ledger, count_held, "r1") == {"w1": 1, "w2": 1}
    assert read(ledger, fetch_open_leases, "r2") == []


def test_the_coverage_of_a_run_shows_what_open_leases_cover(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """The slices do not, until the leases are closed; the sums of both are the same."""
    closed, going = deal(), deal()
    apply([make_batch(closed), make_batch(going, done=6, in_flight=[2], is_final=False)], 6.0)
    coverage = sorted(read(ledger, fetch_coverage, "r1"))
    assert coverage == [
        Slice(0, 10, SliceState.ACCOUNTED),
        Slice(10, 12, SliceState.ACCOUNTED),
        Slice(12, 13, SliceState.LEASED),
        Slice(13, 16, SliceState.ACCOUNTED),
        Slice(16, 20, SliceState.LEASED),
        Slice(20, 100, SliceState.PENDING),
    ]
    accounted = sum(piece.length for piece in coverage if piece.state == SliceState.ACCOUNTED)
    assert accounted == check_ledger(ledger, "r1").accounted == 15


def test_a_lease_is_void_when_it_was_taken_back_or_its_run_has_failed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Nobody waits for a void lease; an open or closed one is not void."""
    expired, active, closed, other = deal(), deal(), deal(), deal(run="r2")
    expire(ledger, [expired.id], ExpiryReason.WORKER_LOST, 3.0)
    apply([make_batch(closed)], 4.0)
    names = [lease.id for lease in (expired, active, closed, other)] + ["unknown", "\ud800"]
    assert read(ledger, lease_table.find_void_leases, names) == [expired.id]
    change(ledger, change_state, "r2", RunState.FAILED, 5.0)
    assert sorted(read(ledger, lease_table.find_void_leases, names)) == sorted([expired.id, other.id])
    assert read(ledger, lease_table.find_void_leases, []) == []
