from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch, deal_lease
from tests.kit.coordinators.transactions import change, check_ledger, read
from tests.kit.outcomes import make_counts

from oku_coordinator.ledger import Ledger, UnknownRunError
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.run_table import fetch_run, set_served
from oku_coordinator.ledger.tables.slice_table import fetch_slices
from oku_core.accounting.interval import Lengths, Slice, SliceState
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: read(ledger, fetch_run, "r9"),
        lambda ledger: read(ledger, fetch_snapshot, "r9"),
        lambda ledger: check_ledger(ledger, "r9"),
        lambda ledger: change(ledger, change_state, "r9", RunState.RUNNING, 0.0),
        lambda ledger: deal_lease(ledger, "r9", 10, 0.0),
        lambda ledger: change(ledger, set_served, "r9", 10),
    ],
)
def test_a_run_that_is_not_there_is_named(ledger: Ledger, ask: Callable[[Ledger], object]) -> None:
    """Whatever is asked of an unknown run raises an error that names it."""
    with pytest.raises(UnknownRunError, match="there is no run r9"):
        ask(ledger)


def test_a_run_goes_from_pending_to_completed(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Lease by lease is dealt, begun and closed, until every request is accounted."""
    for number in range(4):
        lease = deal(30, requests=100)
        assert (lease.start, lease.stop) == (30 * number, min(100, 30 * number + 30))
        begun = make_batch(lease, done=lease.length // 2, is_final=False, cpu_s=0.25)
        assert apply([begun, make_batch(lease, sequence=2)], 10.0 + number) == [
            MessageVerdict.ACCOUNTED,
            MessageVerdict.CLOSED,
        ]
    snapshot = read(ledger, fetch_snapshot, "r1")
    assert snapshot.record.state == RunState.COMPLETED
    assert snapshot.record.ended_at == 13.0
    assert snapshot.record.resent_at_most == 0
    assert snapshot.lengths == Lengths(pending=0, leased=0, accounted=100)
    assert snapshot.account.outcomes == make_counts(100)
    assert snapshot.account.statuses == {"200": 100}
    assert snapshot.account.bytes_received == 1300
    assert (
        snapshot.account.histogram(Time.LATENCY).total,
        snapshot.account.histogram(Time.LATENCY).sum_us,
    ) == (100, 100_000)
    assert [(worker.name, worker.requests, worker.cpu_s) for worker in snapshot.workers] == [("w1", 100, 2.0)]
    assert read(ledger, fetch_slices, "r1") == [Slice(0, 100, SliceState.ACCOUNTED)]


def test_a_snapshot_does_not_change_any_more(
    ledger: Ledger, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """What is accounted later is not in it."""
    first, second = deal(), deal()
    apply([make_batch(first)], 10.0)
    snapshot = read(ledger, fetch_snapshot, "r1")
    apply([make_batch(second)], 11.0)
    assert snapshot.account.outcomes == make_counts(10)
    assert (
        snapshot.account.histogram(Time.LATENCY).build_latency().total
        == snapshot.account.histogram(Time.LATENCY).total
        == 10
    )
    assert snapshot.account.statuses == {"200": 10}


def test_a_reader_follows_a_ledger_that_another_process_writes(
    ledger: Ledger, path: Path, deal: Deal, make_batch: MakeBatch, apply: Apply
) -> None:
    """Each look sees one state of the file, whatever was seen before."""
    reader = Ledger(path, read_only=True)
    first, second = deal(), deal()
    apply([make_batch(first)], 10.0)
    assert read(reader, fetch_snapshot, "r1").account.accounted == 10
    apply([make_batch(second)], 11.0)
    snapshot = read(reader, fetch_snapshot, "r1")
    assert snapshot.account.accounted == snapshot.lengths.accounted == 20
    assert snapshot.breach is None
    reader.close()


def test_a_reader_needs_a_ledger(tmp_path: Path) -> None:
    """A folder without one is the user's mistake, and no file is made."""
    with pytest.raises(UserError, match="there is no ledger"):
        Ledger(tmp_path / "ledger.sqlite3", read_only=True)
    assert list(tmp_path.iterdir()) == []
