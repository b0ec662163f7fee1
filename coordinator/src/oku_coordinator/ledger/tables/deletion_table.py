"""Deletes runs: the row of a run goes at once, everything else in batches.

So the run is invisible after the first transaction, no transaction takes long, and the next process that
opens the ledger removes the remains of a crash.
"""

from oku_coordinator.ledger.storage.records import RunEnd, RunInUseError
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table, submission_table
from oku_coordinator.ledger.tables.run_table import fetch_run

DELETED_AT_ONCE = 500
"""Rows; deleting them takes a few milliseconds."""
_ROWS = {
    "samples": ("at", "run = ?1"),
    "events": ("id", "run = ?1"),
    "slices": ("start", "run = ?1"),
    "workers": ("worker", "run = ?1"),
    # The id of a lease is the id of its run, a dot, and more: "/" is the character after the dot.
    "accounts": ("(phase, name)", "run = ?1"),
    "inner_accounts": ("(phase, name)", "run = ?1"),
    "tracebacks": ("reason", "run = ?1"),
    "series": ("second", "run = ?1"),
    "lease_parts": ("(lease, phase, name)", "lease > ?1 || '.' AND lease < ?1 || '/' AND run = ?1"),
    "inner_parts": ("(lease, phase, name)", "lease > ?1 || '.' AND lease < ?1 || '/' AND run = ?1"),
    "lease_ranges": ("lease", "lease > ?1 || '.' AND lease < ?1 || '/' AND run = ?1"),
    "leases": ("id", "id > ?1 || '.' AND id < ?1 || '/' AND run = ?1"),
    "waves": ("begin", "run = ?1"),
    "active_periods": ("ordinal", "run = ?1"),
    "servers": ("store", "run = ?1"),
    "processes": ("process", "run = ?1"),
    "flags": ("flag", "run = ?1"),
    "failed": ("id", "run = ?1"),
    "thresholds": ("ordinal", "run = ?1"),
    "streams": ("kind", "run = ?1"),
    "hooks": ("hook", "run = ?1"),
    "run_files": ("digest", "run = ?1"),
}
"""For each table, the key of its rows and the condition that selects the rows of a run."""
_STATEMENTS = [
    f"DELETE FROM {table} WHERE {rows} AND {key} IN"  # noqa: S608  # names of our own
    f" (SELECT {key.strip('()')} FROM {table} WHERE {rows} LIMIT ?2)"
    for table, (key, rows) in _ROWS.items()
]
"""Each removes a limited number of rows of a run."""


def begin_deletion(transaction: Transaction, run: str, end: RunEnd | None = None) -> int:
    """Remove the row of a run; `delete_some` removes the rest.

    Args:
        transaction: to write in.
        run: its id.
        end: its lasting record; required if it was submitted with a key.

    Returns:
        How many of its lines were still waiting for Loki; they are dropped.

    Raises:
        UnknownRunError: there is none.
        RunInUseError: it is not at rest.
    """
    record = fetch_run(transaction, run)
    if not record.is_at_rest:
        raise RunInUseError(run, record.state)
    for table in ("runs", "specs", "schedules", "histories", "failed_sizes", "retries"):
        transaction.execute(f"DELETE FROM {table} WHERE run = ?", run)  # noqa: S608  # names of our own
    transaction.accounts.pop(run, None)
    transaction.execute("INSERT INTO deletions VALUES (?)", run)
    submission_table.record_deletion(transaction, run, end)
    return outbox_table.count_lines(transaction, run)


def find_deletion(transaction: Transaction) -> str | None:
    """A deleted run that still has rows; None if there is none."""
    row = transaction.select_one("SELECT run FROM deletions LIMIT 1")
    return row["run"] if row else None


def delete_some(transaction: Transaction, run: str, most: int = DELETED_AT_ONCE) -> bool:
    """Remove at most this many rows of a deleted run; returns whether some may be left."""
    left = most - outbox_table.remove_some(transaction, run, most)
    for statement in _STATEMENTS:
        if left <= 0:
            return True
        left -= transaction.execute(statement, run, left)
    if left <= 0:
        return True
    transaction.execute("DELETE FROM deletions WHERE run = ?", run)
    return False


def find_surplus(transaction: Transaction, most: int | None, ended_before: float | None) -> list[str]:
    """Runs that ended before a time, or that are over in excess of `most`; oldest first.

    Runs with lines that wait for Loki are left out.
    """
    rows = transaction.select(
        "SELECT run FROM (SELECT run, ended_at, owes_summary, row_number() OVER (ORDER BY ended_at DESC) AS"
        " place FROM runs WHERE state IN ('completed', 'cancelled', 'failed')) AS ended"
        " WHERE (place > ?1 OR ended_at < ?2) AND NOT owes_summary"
        " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.run = ended.run) ORDER BY ended_at LIMIT 100",
        most, ended_before,
    )  # fmt: skip
    return [row["run"] for row in rows]
