import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch
from tests.kit.coordinators.tampering import TAMPERINGS
from tests.kit.coordinators.transactions import change, read
from tests.kit.coordinators.transactions import change as change_ledger

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_standing
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.row_tally import RowTally
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.lease_table import count_held, fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import ConservationError, Lengths, Slice
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState

FAULTS = TAMPERINGS | {
    "a slice is leased to nobody": "UPDATE slices SET state = 'leased' WHERE state = 'pending'",
    "a worker is gone": "DELETE FROM workers",
    "a lease was closed": "UPDATE leases SET state = 'expired' WHERE start = 20",
    "a lease is gone": "DELETE FROM leases WHERE start = 20",
    "a limit lies below what is done": 'UPDATE leases SET "limit" = 4 WHERE start = 20',
}


def change_unseen(transaction: Transaction, fault: str) -> None:
    """Execute a statement that no code of ours should, in a transaction that is about the run."""
    transaction.touched.add("r1")
    transaction.execute(fault)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_of_our_own_is_found_at_the_commit_that_brings_it(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, fault: str
) -> None:
    """Whatever statement did it, nothing of the transaction stays, and the run fails."""
    done, _, open_lease = deal(), deal(), deal()
    apply([make_batch(done), make_batch(open_lease, done=5, in_flight=[2], is_final=False)], 5.0)
    before = read(ledger, fetch_slices, "r1"), read(ledger, fetch_open_leases, "r1")
    with pytest.raises(BreachError):
        change(ledger, change_unseen, fault)
    assert (read(ledger, fetch_slices, "r1"), read(ledger, fetch_open_leases, "r1")) == before
    assert read(ledger, fetch_run, "r1").state == RunState.FAILED


def test_a_change_that_nobody_declared_is_checked_too(ledger: Ledger, deal: Deal) -> None:
    """The triggers tell of the changed rows."""
    deal()
    with pytest.raises(BreachError, match="became slices that cover"):
        change(ledger, lambda transaction: transaction.execute("DELETE FROM slices WHERE start = 10"))


def test_what_was_undone_is_not_in_the_tally(ledger: Ledger, deal: Deal) -> None:
    """A transaction that fails leaves no trace in memory either."""
    lease = deal()

    def fail(transaction: Transaction) -> None:
        transaction.execute("DELETE FROM slices")
        raise RuntimeError("disk")

    with pytest.raises(RuntimeError, match="disk"):
        change(ledger, fail)
    assert read(ledger, fetch_standing, "r1").leases == {lease.id: build_no_counts()}
    assert read(ledger, fetch_standing, "r1").lengths == Lengths(90, 10, 0)


def test_a_run_without_a_tally_is_read_from_its_rows(ledger: Ledger, path: Path, deal: Deal) -> None:
    """There is no tally after another process has written the file, until the next commit."""
    lease = deal()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE leases SET worker = 'w9'")
    assert read(ledger, fetch_standing, "r1").lengths == Lengths(90, 10, 0)
    assert read(ledger, count_held, "r1") == {"w9": 1}
    assert [active.id for active in read(ledger, fetch_open_leases, "r1")] == [lease.id]


def test_a_tally_costs_no_look_at_other_rows(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is checked by what it changed, without reading the run again; a change of state reads all of
    it.
    """
    lease, _ = deal(), deal()
    looks: list[str] = []

    def look(transaction: Transaction, run: str) -> list[Slice]:
        looks.append(run)
        return fetch_slices(transaction, run)

    monkeypatch.setattr("oku_coordinator.ledger.rules.conservation.fetch_slices", look)
    apply([make_batch(lease)], 5.0)
    assert looks == []
    change_ledger(ledger, change_state, "r1", RunState.PAUSING, 6.0)
    assert looks == ["r1"]


def test_a_slice_that_changes_twice_is_a_breach() -> None:
    """A row that is added twice cannot be right."""
    tally = RowTally(Lengths(10, 0, 0), [], parts={}, worker_requests=0, series=build_no_counts())
    tally.count_slice(1, 0, 5, "pending")
    tally.count_slice(1, 0, 5, "pending")
    with pytest.raises(ConservationError, match="has changed 2 times"):
        tally.check()
