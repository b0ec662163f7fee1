"""The rows of runs in the ledger."""

import math
import secrets
import sqlite3
from contextlib import suppress
from dataclasses import fields
from typing import Any

import msgspec

from oku_coordinator.ledger.storage.lease_records import decode_counts
from oku_coordinator.ledger.storage.records import RunRecord, RunRow, UnknownRunError
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.submission_table import insert_files
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.digits import parse_digits
from oku_core.errors import UserError, format_value
from oku_core.results.lines import RunHead
from oku_core.results.run_api import LATEST
from oku_core.spec.description import describe_load, describe_target
from oku_core.spec.engine_choice import EngineChoice, choose_engine
from oku_core.spec.files import list_files
from oku_core.spec.spec import Spec, decode_spec, encode_spec

_COUNT_NAME_BYTES = 16
MOST_SPECS = 8
"""How many decoded specs are cached; with one more, all are forgotten."""
_COLUMNS = ", ".join("rowid AS number" if field.name == "number" else field.name for field in fields(RunRow))
"""The columns of a `RunRow`; the histogram, which is large, is not among them."""
_LIVE = "state IN ('running', 'pausing', 'cancelling', 'tearing_down', 'pending')"
"""The condition of the index `live_runs`; `rested_runs` has the following states and time."""
_AT_REST = "('paused', 'completed', 'cancelled', 'failed')"
_RESTED_AT = "coalesce(ended_at, last_checkpoint_at)"


def insert_run(transaction: Transaction, run: str, spec: Spec, now: float) -> None:
    """Insert a new run with the engine that is chosen for it; its slices must be stored, too."""
    engine = choose_engine(spec)
    spec = msgspec.structs.replace(spec, engine=engine.engine)
    transaction.execute(
        "INSERT INTO runs (run, name, requests, state, queued_at, created_at, outcomes, is_published, engine,"
        " target, load, count_name) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run, spec.name, spec.requests, RunState.PENDING, now, now, f"{build_no_counts()}",
        transaction.publishes, str(engine), describe_target(spec), describe_load(spec),
        secrets.token_hex(_COUNT_NAME_BYTES),
    )  # fmt: skip
    transaction.execute("INSERT INTO specs VALUES (?, ?)", run, encode_spec(spec).decode())
    insert_files(transaction, run, (file.digest for file in list_files(spec)))
    transaction.touched.add(run)


def fetch_run(transaction: Transaction, run: str) -> RunRecord:
    """One run; `UnknownRunError` if there is no such run."""
    row = transaction.select_one(f"SELECT {_COLUMNS} FROM runs WHERE run = ?", run)  # noqa: S608  # names of our own
    if row is None:
        raise UnknownRunError(run)
    return RunRecord(**_decode_columns(row), spec=fetch_spec(transaction, run))


def fetch_spec(transaction: Transaction, run: str) -> Spec:
    """The spec of an existing run."""
    if spec := transaction.specs.get(run):
        return spec
    row = transaction.select("SELECT spec FROM specs WHERE run = ?", run)[0]
    if len(transaction.specs) >= MOST_SPECS:
        transaction.specs.clear()
    return transaction.specs.setdefault(run, decode_spec(row["spec"]))


def fetch_head(transaction: Transaction, run: str) -> RunHead:
    """The description of an existing run, in words."""
    row = transaction.select("SELECT load FROM runs WHERE run = ?", run)[0]
    return RunHead(target=describe_target(fetch_spec(transaction, run)), load=row["load"])


def _decode_columns(row: sqlite3.Row) -> dict[str, Any]:
    columns = dict(row)
    columns["engine"] = EngineChoice.parse(row["engine"])
    columns["state"] = RunState(row["state"])
    columns["outcomes"] = decode_counts(row["outcomes"])
    columns["is_broken"] = bool(row["is_broken"])
    columns["is_published"] = bool(row["is_published"])
    columns["drops_in_flight"] = bool(row["drops_in_flight"])
    return columns


def fetch_state(transaction: Transaction, run: str) -> RunState | None:
    """The state of a run; None if there is no such run."""
    row = transaction.select_one("SELECT state FROM runs WHERE run = ?", run)
    return RunState(row["state"]) if row else None


def fetch_runs(
    transaction: Transaction, most: int = -1, after: str = "", reference: str | None = None
) -> list[RunRow]:
    """Runs, newest first, without their specs, which may be large.

    Args:
        transaction: to read in.
        most: the largest number of runs; -1 for all.
        after: the `cursor` of the run before them; empty for the newest ones.
        reference: selects runs, as in `oku_core.results.run_api`; None for all.

    Raises:
        UserError: `after` is not a cursor.
    """
    created_at, number = _read_cursor(after)
    condition = "? IS NULL" if reference is None else _choose_condition(transaction, reference)
    rows = transaction.select(
        f"SELECT {_COLUMNS} FROM runs WHERE {condition} AND (created_at, rowid) < (?, ?)"  # noqa: S608  # ours
        " ORDER BY created_at DESC, rowid DESC LIMIT ?",
        reference, created_at, number, most,
    )  # fmt: skip
    return [RunRow(**_decode_columns(row)) for row in rows]


def _choose_condition(transaction: Transaction, reference: str) -> str:
    """SQL with one value, the reference, that selects the matching runs."""
    if transaction.select("SELECT 1 FROM runs WHERE run = ?", reference):
        return "run = ?"
    if reference == LATEST:
        return (
            "? IS NOT NULL"  # each condition takes one value
            " AND rowid = (SELECT rowid FROM runs ORDER BY created_at DESC, rowid DESC LIMIT 1)"
        )
    if transaction.select("SELECT 1 FROM runs WHERE name = ? LIMIT 1", reference):
        return "name = ?"
    return "instr(run, ?)"


def _read_cursor(text: str) -> tuple[float, int]:
    if not text:
        return math.inf, 0
    written, _, digits = text.partition("_")
    number = parse_digits(digits)
    with suppress(ValueError):
        created_at = float(written)
        if number is not None and math.isfinite(created_at) and text == f"{created_at!r}_{number}":
            return created_at, number
    raise UserError(f"after: {format_value(text)} is not a cursor from a list of runs")


def fetch_current_run(transaction: Transaction) -> RunRecord | None:
    """The active run, else the pending one that has waited longest; None if all runs are at rest."""
    first = _select_live(transaction, 1)
    return fetch_run(transaction, first[0]) if first else None


def fetch_live_runs(transaction: Transaction) -> list[str]:
    """The runs that are not at rest, in the order of their turns."""
    return _select_live(transaction, -1)


def count_queued(transaction: Transaction) -> int:
    """The number of pending or active runs."""
    return len(fetch_live_runs(transaction))


def fetch_recent(transaction: Transaction, rested_since: float, most: int) -> list[RunRow]:
    """The active runs, then the ones that came to rest since a time, newest first; at most `most`."""
    active = (
        f"SELECT {_COLUMNS} FROM runs INDEXED BY live_runs WHERE {_LIVE} AND state != 'pending'"  # noqa: S608  # ours
        " ORDER BY queued_at DESC, rowid DESC LIMIT ?"
    )
    rested = (
        f"SELECT {_COLUMNS} FROM runs INDEXED BY rested_runs WHERE state IN {_AT_REST}"  # noqa: S608  # ours
        f" AND {_RESTED_AT} >= ? ORDER BY {_RESTED_AT} DESC, rowid DESC LIMIT ?"
    )
    rows = transaction.select(active, most)
    rows += transaction.select(rested, rested_since, most - len(rows))
    return [RunRow(**_decode_columns(row)) for row in rows]


def count_by_state(transaction: Transaction) -> dict[RunState, int]:
    """The number of runs in each state; only indexes are read, for there may be very many runs at rest."""
    rows = transaction.select(
        f"SELECT state, count(*) AS runs FROM runs INDEXED BY live_runs WHERE {_LIVE} GROUP BY state"  # noqa: S608  # ours
        " UNION ALL SELECT state, count(*) FROM runs INDEXED BY rested_runs"
        f" WHERE state IN {_AT_REST} GROUP BY state"
    )
    return dict.fromkeys(RunState, 0) | {RunState(row["state"]): row["runs"] for row in rows}


def find_longest_queued_s(transaction: Transaction, now: float) -> float:
    """The longest queueing time of a pending run by `now`; 0 without one."""
    row = transaction.select(
        "SELECT max(queued_s + max(0, ? - queued_at)) AS longest_s FROM runs INDEXED BY live_runs"  # noqa: S608  # ours
        f" WHERE {_LIVE} AND state = 'pending'",
        now,
    )[0]
    return row["longest_s"] or 0.0


def _select_live(transaction: Transaction, most: int) -> list[str]:
    rows = transaction.select(
        # The index is named because SQLite might scan all runs.
        f"SELECT run FROM runs INDEXED BY live_runs WHERE {_LIVE}"  # noqa: S608  # names of our own
        # A paused run that is cancelled tears down after the active run.
        " ORDER BY state = 'pending', state = 'tearing_down', queued_at, rowid LIMIT ?",
        most,
    )
    return [row["run"] for row in rows]


def add_resent(transaction: Transaction, run: str, count: int) -> None:
    """Count more requests that may have been sent again."""
    transaction.execute("UPDATE runs SET resent_at_most = resent_at_most + ? WHERE run = ?", count, run)


def add_watched(
    transaction: Transaction, run: str, watched_s: float, underfilled_s: float, now: float
) -> None:
    """Record that checkpoints came, and add the seconds that they cover."""
    transaction.execute(
        "UPDATE runs SET watched_s = watched_s + ?, underfilled_s = underfilled_s + ?, last_checkpoint_at = ?"
        " WHERE run = ?",
        watched_s, underfilled_s, now, run,
    )  # fmt: skip


def record_last_end(transaction: Transaction, run: str, ended_at: float) -> None:
    """Record when a request of a run ended, in Unix time; only the latest counts."""
    transaction.execute(
        "UPDATE runs SET last_ended_at = ?1 WHERE run = ?2 AND coalesce(last_ended_at, 0) < ?1", ended_at, run
    )


def set_requests(transaction: Transaction, run: str, requests: int) -> None:
    """Set the number of requests of a run; its spec may allow for more."""
    transaction.execute("UPDATE runs SET requests = ? WHERE run = ?", requests, run)


def set_load(transaction: Transaction, run: str, load: str) -> None:
    """Set the load of a run in lists, if it does not follow from the spec alone."""
    transaction.execute("UPDATE runs SET load = ? WHERE run = ?", load, run)


def set_served(transaction: Transaction, run: str, served: int) -> None:
    """Store the count of the delay servers for a run at rest; does nothing for any other."""
    if fetch_run(transaction, run).is_at_rest:
        transaction.execute("UPDATE runs SET served = ? WHERE run = ?", served, run)


def set_published(transaction: Transaction, run: str) -> None:
    """Decide whether lines of a run are stored for Loki from now on."""
    transaction.execute("UPDATE runs SET is_published = ? WHERE run = ?", transaction.publishes, run)


def write_state(
    transaction: Transaction, run: str, state: RunState, reason: str, *, ended_at: float | None
) -> None:
    """Put a run into a state, for a reason; `ended_at` is the time of its end, if it is over."""
    transaction.execute(
        "UPDATE runs SET state = ?, reason = ?, ended_at = ? WHERE run = ?", state, reason, ended_at, run
    )


def mark_broken(transaction: Transaction, run: str) -> None:
    """Record that the account of a run does not balance."""
    transaction.execute("UPDATE runs SET is_broken = 1 WHERE run = ?", run)


def add_queued_time(transaction: Transaction, run: str, now: float) -> None:
    """Add the time since a pending run was last queued to its queueing time."""
    transaction.execute(
        "UPDATE runs SET queued_s = queued_s + max(0, ?1 - queued_at) WHERE run = ?2 AND state = 'pending'",
        now, run,
    )  # fmt: skip


def move_to_queue_end(transaction: Transaction, run: str, now: float) -> None:
    """Put a run at the end of the queue; once it is stopped again, its requests may finish."""
    transaction.execute("UPDATE runs SET queued_at = ?, drops_in_flight = 0 WHERE run = ?", now, run)


def drop_in_flight(transaction: Transaction, run: str) -> None:
    """Record that a run being cancelled drops its requests in flight."""
    transaction.execute("UPDATE runs SET drops_in_flight = 1 WHERE run = ? AND state = 'cancelling'", run)


def forget_served(transaction: Transaction, run: str) -> None:
    """Delete the count of the delay servers: the run is about to send more."""
    transaction.execute("UPDATE runs SET served = NULL WHERE run = ?", run)


def open_period(transaction: Transaction, run: str, begun_at: float) -> None:
    """Open a period of activity when a worker has started; only for an active run without an open one."""
    transaction.execute(
        "UPDATE runs SET active_since = ?1, periods = periods + 1, started_at = coalesce(started_at, ?1)"
        " WHERE run = ?2 AND active_since IS NULL AND state IN ('running', 'pausing', 'cancelling')",
        begun_at, run,
    )  # fmt: skip


def close_period(transaction: Transaction, run: str, ended_at: float | None) -> None:
    """Close the open period, if there is one; with None, it does not count."""
    transaction.execute(
        "UPDATE runs SET active_s = active_s + max(0, coalesce(?1, active_since) - active_since),"
        " active_since = NULL WHERE run = ?2 AND active_since IS NOT NULL",
        ended_at, run,
    )  # fmt: skip


def schedule_summary(transaction: Transaction, run: str) -> None:
    """Make the summary of a run at rest due, if its lines are published."""
    transaction.execute("UPDATE runs SET owes_summary = is_published WHERE run = ?", run)


def mark_summary_published(transaction: Transaction, run: str) -> bool:
    """Record that the summary of a run is published; returns whether it was due."""
    settled = transaction.execute("UPDATE runs SET owes_summary = 0 WHERE run = ? AND owes_summary = 1", run)
    return bool(settled)


def list_due_summaries(transaction: Transaction) -> list[str]:
    """The runs at rest with unpublished summaries."""
    rows = transaction.select("SELECT run FROM runs INDEXED BY owing_runs WHERE owes_summary = 1")
    return [row["run"] for row in rows]
