"""The rows of leases in the ledger, and of the executions of a lease that do not count."""

import json
from collections import Counter
from collections.abc import Callable, Iterable

from oku_coordinator.ledger.storage.records import LeaseRecord, build_lease_record
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.run_table import add_resent, fetch_run
from oku_coordinator.ledger.tables.slice_table import cut_first_pending, sum_lengths
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Message, build_lease_id


def cut_leases(
    transaction: Transaction, run: str, choices: Iterable[Callable[[int], int]], now: float
) -> list[LeaseRecord]:
    """Lease the first pending indices of a run, once for each choice; none when it is not running.

    A choice gives the largest size of a lease for the number of pending requests.
    """
    if fetch_run(transaction, run).state != RunState.RUNNING:
        return []
    leases = []
    for choose in choices:
        pending = sum_lengths(transaction, run).pending
        piece = cut_first_pending(transaction, run, choose(pending)) if pending else None
        if piece is None:
            break
        leases.append(_enter_lease(transaction, run, piece, now))
    return leases


def _enter_lease(transaction: Transaction, run: str, piece: Slice, now: float) -> LeaseRecord:
    transaction.execute("UPDATE runs SET leases_cut = leases_cut + 1 WHERE run = ?", run)
    number = transaction.select("SELECT leases_cut FROM runs WHERE run = ?", run)[0]["leases_cut"]
    lease = build_lease_id(run, number)
    transaction.execute(
        "INSERT INTO leases (id, run, start, stop, state, cut_at) VALUES (?, ?, ?, ?, ?, ?)",
        lease, run, piece.start, piece.stop, LeaseState.ACTIVE, now,
    )  # fmt: skip
    return LeaseRecord(
        id=lease, run=run, start=piece.start, stop=piece.stop, state=LeaseState.ACTIVE, reason="",
        cut_at=now, execution=None, worker=None, incarnation=None,
    )  # fmt: skip


def find_lease(transaction: Transaction, lease: str) -> LeaseRecord | None:
    """A lease in whatever state; None when there is none with that id."""
    # The leases of a run that is being deleted do not count any more.
    row = transaction.select_one("SELECT leases.* FROM leases JOIN runs USING (run) WHERE id = ?", lease)
    return build_lease_record(row) if row else None


def fetch_active_leases(transaction: Transaction, run: str) -> list[LeaseRecord]:
    """The active leases of a run."""
    if tally := transaction.tallies.get(run):
        return list(tally.leases.values())
    return read_active_leases(transaction, run)


def fetch_active_ids(transaction: Transaction, run: str) -> frozenset[str]:
    """The ids of the active leases of a run."""
    if tally := transaction.tallies.get(run):
        return frozenset(tally.leases)
    return frozenset(lease.id for lease in read_active_leases(transaction, run))


def read_active_leases(transaction: Transaction, run: str) -> list[LeaseRecord]:
    """The active leases of a run as its rows have them, whatever the tally says."""
    rows = transaction.select("SELECT * FROM leases WHERE run = ? AND state = 'active'", run)
    return [build_lease_record(row) for row in rows]


def count_held(transaction: Transaction, run: str) -> Counter[str | None]:
    """How many active leases each worker has; those that nobody has claimed count for None."""
    if tally := transaction.tallies.get(run):
        return tally.held.copy()
    return Counter(lease.worker for lease in read_active_leases(transaction, run))


def find_void(transaction: Transaction, leases: Iterable[str]) -> list[str]:
    """Which of these leases are void: they were taken back, or their run has failed."""
    rows = transaction.select(
        "SELECT id FROM leases JOIN runs USING (run) WHERE id IN (SELECT value FROM json_each(?))"
        " AND (leases.state = 'expired' OR leases.state = 'active' AND runs.state = 'failed')",
        json.dumps(list(leases)),
    )
    return [row["id"] for row in rows]


def fetch_taken_back(transaction: Transaction, run: str) -> list[tuple[int, int]]:
    """The ranges of leases of a run that were taken back and may have been sent, `[start, stop)`."""
    rows = transaction.select(
        "SELECT start, stop FROM leases INDEXED BY expired_leases"
        " WHERE run = ? AND state = 'expired' AND reason != ?",
        run, ExpiryReason.NOT_SENT,
    )  # fmt: skip
    return [(row["start"], row["stop"]) for row in rows]


def adopt_execution(transaction: Transaction, lease: LeaseRecord, message: Message) -> None:
    """The first execution of a lease that the ledger hears of is the one that counts."""
    transaction.execute(
        "UPDATE leases SET execution = ?, worker = ?, incarnation = ? WHERE id = ?",
        message.execution, message.worker, message.incarnation, lease.id,
    )  # fmt: skip


def close_reported(transaction: Transaction, lease: LeaseRecord, covered: int, now: float) -> None:
    """Mark a lease as reported."""
    transaction.execute(
        "UPDATE leases SET state = ?, closed_at = ?, covered = ? WHERE id = ?",
        LeaseState.REPORTED, now, covered, lease.id,
    )  # fmt: skip


def close_expired(transaction: Transaction, lease: LeaseRecord, reason: ExpiryReason, now: float) -> None:
    """Mark a lease as taken back."""
    transaction.execute(
        "UPDATE leases SET state = ?, reason = ?, closed_at = ? WHERE id = ?",
        LeaseState.EXPIRED, reason, now, lease.id,
    )  # fmt: skip


def note_stray(transaction: Transaction, lease: LeaseRecord, execution: str, sent: int) -> None:
    """Note an execution that does not count: its requests were sent again."""
    if sent == 0:
        return
    if transaction.execute(
        "INSERT OR IGNORE INTO strays (lease, execution) VALUES (?, ?)", lease.id, execution
    ):
        add_resent(transaction, lease.run, sent)
