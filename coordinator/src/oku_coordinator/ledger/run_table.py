"""The rows of runs in the ledger."""

import msgspec

from oku_coordinator.ledger.record import RunRecord, UnknownRunError, build_run_record
from oku_coordinator.ledger.slice_table import insert_slices
from oku_coordinator.ledger.transaction import Transaction
from oku_core.interval import Slice, SliceState
from oku_core.outcome import build_no_counts
from oku_core.run import RunState
from oku_core.spec import Spec


def insert_run(transaction: Transaction, run: str, spec: Spec, now: float, *, is_published: bool) -> None:
    """Enter a new run; its whole request space is pending."""
    transaction.execute(
        "INSERT INTO runs (run, name, spec, requests, state, queued_at, created_at, outcomes, is_published)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run, spec.name, msgspec.json.encode(spec).decode(), spec.requests, RunState.PENDING, now, now,
        f"{build_no_counts()}", is_published,
    )  # fmt: skip
    insert_slices(transaction, run, [Slice(0, spec.requests, SliceState.PENDING)])
    transaction.touched.add(run)


def fetch_run(transaction: Transaction, run: str) -> RunRecord:
    """One run; `UnknownRunError` when there is none of that name."""
    row = transaction.select_one("SELECT * FROM runs WHERE run = ?", run)
    if row is None:
        raise UnknownRunError(run)
    return build_run_record(row)


def fetch_runs(transaction: Transaction) -> list[RunRecord]:
    """All runs, newest first."""
    rows = transaction.select("SELECT * FROM runs ORDER BY created_at DESC, rowid DESC")
    return [build_run_record(row) for row in rows]


def fetch_next_run(transaction: Transaction) -> RunRecord | None:
    """The run that has its turn: the active one, else the one that has waited longest."""
    row = transaction.select_one(
        "SELECT * FROM runs WHERE state IN ('running', 'pausing', 'cancelling', 'pending')"
        " ORDER BY state = 'pending', queued_at, rowid LIMIT 1"
    )
    return build_run_record(row) if row else None


def add_resent(transaction: Transaction, run: str, count: int) -> None:
    """So many requests more may have been sent again."""
    transaction.execute("UPDATE runs SET resent_at_most = resent_at_most + ? WHERE run = ?", count, run)


def set_served(transaction: Transaction, run: str, served: int) -> None:
    """Keep what the delay servers counted, unless the run is about to send more."""
    if fetch_run(transaction, run).is_at_rest:
        transaction.execute("UPDATE runs SET served = ? WHERE run = ?", served, run)


def set_published(transaction: Transaction, run: str, *, is_published: bool) -> None:
    """From now on, lines of a run are kept for Loki, or are not."""
    transaction.execute("UPDATE runs SET is_published = ? WHERE run = ?", is_published, run)
