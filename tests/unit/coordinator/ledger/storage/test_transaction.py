import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch, apply_batches, deal_if_pending
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.account_table import is_in_memory
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.lease_records import LeaseRecord


def test_a_change_that_fails_half_way_is_undone_as_a_whole(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is undone in memory, too: the account is as before, and the same checkpoints count afterwards."""
    batches = [make_batch(deal()), make_batch(deal())]

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as context:
        context.setattr("oku_coordinator.ledger.rules.conservation.write_accounts", fail)
        with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
            apply(batches, 5.0)
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert (snapshot.account.accounted, snapshot.account.histogram(Time.LATENCY).total) == (0, 0)
    assert (snapshot.lengths.leased, snapshot.breach) == (20, None)
    assert apply(batches, 6.0) == [MessageVerdict.CLOSED, MessageVerdict.CLOSED]
    assert read(ledger, fetch_snapshot, "r1").account.histogram(Time.LATENCY).total == 20


def test_a_refused_change_leaves_the_active_run_in_memory(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Its account need not be read again; one that has changed before the refusal must be."""
    change(ledger, create_run, "r2", Spec(requests=10), 0.0)
    change(ledger, change_state, "r2", RunState.CANCELLED, 1.0)
    apply([make_batch(deal())], 5.0)
    with pytest.raises(TransitionError):
        change(ledger, change_state, "r2", RunState.PAUSED, 6.0)
    assert read(ledger, is_in_memory, "r1")

    def fail_late(transaction: Transaction) -> None:
        transaction.execute("UPDATE runs SET reason = 'none' WHERE run = 'r1'")
        change_state(transaction, "r2", RunState.PAUSED, 7.0)

    with pytest.raises(TransitionError):
        change(ledger, fail_late)
    assert not read(ledger, is_in_memory, "r1")


def test_who_only_reads_cannot_write(
    ledger: Ledger, path: Path, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """A command that shows runs leaves the file to its coordinator."""
    lease = deal()
    reader = Ledger(path, read_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        apply_batches(reader, [make_batch(lease)], 5.0)
    assert read(ledger, fetch_run, "r1").accounted == 0
    reader.close()


def test_threads_take_turns(
    ledger: Ledger, begin_run: Callable[..., object], make_batch: MakeBatch, apply: Apply
) -> None:
    """One deals leases, one takes checkpoints in, two look: the account balances whenever somebody looks."""
    begin_run(requests=150)
    out: list[LeaseRecord] = []
    is_over = threading.Event()

    def deal() -> None:
        while lease := deal_if_pending(ledger, "r1", 7, 2.0):
            out.append(lease)

    def take_in() -> None:
        try:
            while read(ledger, fetch_run, "r1").state == RunState.RUNNING:
                apply([make_batch(lease) for lease in out[-3:]], 5.0)
                apply([make_batch(lease) for lease in out], 5.0)
        finally:
            is_over.set()

    def look() -> int:
        looks = 0
        while not is_over.is_set():
            snapshot = read(ledger, fetch_snapshot, "r1")
            assert snapshot.breach is None
            assert snapshot.account.accounted == snapshot.lengths.accounted == snapshot.record.accounted
            looks += 1
        return looks

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work) for work in (deal, take_in, look, look)]
    assert [future.exception() for future in futures] == [None] * 4
    assert read(ledger, fetch_run, "r1").state == RunState.COMPLETED
    assert read(ledger, fetch_run, "r1").accounted == 150


def test_a_transaction_within_another_one_is_refused(ledger: Ledger) -> None:
    """It would end the first one silently. That one is rolled back as a whole, and another can begin."""
    change(ledger, create_run, "r1", Spec(requests=10), 0.0)

    def nest(transaction: Transaction, function: Callable[..., object]) -> None:
        transaction.execute("DELETE FROM runs")
        function(ledger, fetch_run, "r1")

    for function in (read, change):
        with pytest.raises(RuntimeError, match="open already"):
            change(ledger, nest, function)
    assert read(ledger, fetch_run, "r1").run == "r1"


def test_a_thread_that_computes_lets_a_change_end_first(ledger: Ledger) -> None:
    """It goes on at once while nothing is changed."""
    ledger.yield_to_change()
    done: list[str] = []

    def compute() -> None:
        ledger.yield_to_change()
        done.append("computed")

    with ThreadPoolExecutor(1) as pool:
        with ledger.change():
            computing = pool.submit(compute)
            done.append("changed")
        computing.result()
    assert done == ["changed", "computed"]
