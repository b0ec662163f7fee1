"""The rows of runs in the ledger."""

import math
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from oku_coordinator.ledger.records import (
    ListedRun,
    RunRecord,
    UnknownRunError,
    build_listed_run,
    build_run_record,
)
from oku_coordinator.ledger.slice_table import insert_slices
from oku_coordinator.ledger.transaction import Transaction
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError, format_value
from oku_core.spec.spec import Spec


def insert_run(transaction: Transaction, run: str, spec: Spec, now: float, *, is_published: bool) -> None:
    """Enter a new run; its whole request space is pending."""
    transaction.execute(
        "INSERT INTO runs (run, name, requests, state, queued_at, created_at, outcomes, is_published, engine,"
        " target) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run, spec.name, spec.requests, RunState.PENDING, now, now, f"{build_no_counts()}", is_published,
        spec.engine, _shorten(spec.urls),
    )  # fmt: skip
    transaction.execute("INSERT INTO specs VALUES (?, ?)", run, msgspec.json.encode(spec).decode())
    insert_slices(transaction, run, [Slice(0, spec.requests, SliceState.PENDING)])
    transaction.touched.add(run)


def fetch_run(transaction: Transaction, run: str) -> RunRecord:
    """One run; `UnknownRunError` when there is none of that name."""
    row = transaction.select_one("SELECT * FROM runs JOIN specs USING (run) WHERE run = ?", run)
    if row is None:
        raise UnknownRunError(run)
    return build_run_record(row)


def fetch_state(transaction: Transaction, run: str) -> RunState | None:
    """The state of a run, without a look at its spec; None when there is none of that name."""
    row = transaction.select_one("SELECT state FROM runs WHERE run = ?", run)
    return RunState(row["state"]) if row else None


def fetch_runs(transaction: Transaction, most: int, after: str) -> list[ListedRun]:
    """Runs, newest first, without their specs, which may be large.

    Args:
        transaction: to read in.
        most: how many there may be; -1 for all.
        after: the `cursor` of a run behind which they begin; empty for the newest ones.

    Raises:
        UserError: that is no cursor.
    """
    created_at, number = _read_cursor(after)
    rows = transaction.select(
        "SELECT rowid AS number, run, name, state, reason, requests, engine, target, created_at, started_at,"
        " ended_at, active_s, outcomes FROM runs WHERE (created_at, rowid) < (?, ?)"
        " ORDER BY created_at DESC, rowid DESC LIMIT ?",
        created_at, number, most,
    )  # fmt: skip
    return [build_listed_run(row) for row in rows]


def _read_cursor(text: str) -> tuple[float, int]:
    if not text:
        return math.inf, 0
    try:
        created_at, number = text.split("_")
        return float(created_at), int(number)
    except ValueError:
        raise UserError(f"after: {format_value(text)} is not what a list of runs gave") from None


def _shorten(urls: Sequence[str]) -> str:
    """Scheme, host and port of the first of them, nothing that may be a secret."""
    if not urls:
        return ""
    parts = urlsplit(urls[0])
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def fetch_current_run(transaction: Transaction) -> RunRecord | None:
    """The run that has its turn: the active one, else the one that has waited longest."""
    first = _select_live(transaction, 1)
    return fetch_run(transaction, first[0]) if first else None


def fetch_live_runs(transaction: Transaction) -> list[str]:
    """The runs that are not at rest, in the order of their turns."""
    return _select_live(transaction, -1)


def _select_live(transaction: Transaction, most: int) -> list[str]:
    rows = transaction.select(
        # Told by name: by itself, SQLite may go through all runs that there ever were.
        "SELECT run FROM runs INDEXED BY live_runs"
        " WHERE state IN ('running', 'pausing', 'cancelling', 'pending')"
        " ORDER BY state = 'pending', queued_at, rowid LIMIT ?",
        most,
    )
    return [row["run"] for row in rows]


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
