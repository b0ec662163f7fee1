"""The rows of hooks: the attempts at `setup` and `teardown` of a run, and their results."""

import sqlite3

from oku_coordinator.ledger.storage.records import HookRecord, RunRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_core.accounting.run_state import RunState
from oku_core.messaging.hook import NO_SETUP, HookReport, SetupData
from oku_core.spec.spec import Hook
from oku_core.summary.summary import HookState

_COLUMNS = (
    "hook, state, attempt, tries, worker, incarnation, since, ended_at, error, traceback, end_state,"
    " end_reason"
)
_OVER = frozenset({HookState.DONE, HookState.FAILED, HookState.GIVEN_UP})


def fetch_hook(transaction: Transaction, run: str, hook: Hook) -> HookRecord | None:
    """The state of a hook; None if it was never due. Its return value is not read."""
    row = transaction.select_one(
        f"SELECT {_COLUMNS} FROM hooks WHERE run = ? AND hook = ?",  # noqa: S608  # names of our own
        run, hook,
    )  # fmt: skip
    return None if row is None else _build_record(row)


def fetch_hooks(transaction: Transaction, run: str) -> list[HookRecord]:
    """The states of the hooks of a run, the setup first."""
    rows = transaction.select(
        f"SELECT {_COLUMNS} FROM hooks WHERE run = ? ORDER BY hook",  # noqa: S608  # names of our own
        run,
    )
    return [_build_record(row) for row in rows]


def _build_record(row: sqlite3.Row) -> HookRecord:
    columns = dict(row)
    columns["hook"], columns["state"] = Hook(row["hook"]), HookState(row["state"])
    columns["end_state"] = RunState(row["end_state"]) if row["end_state"] else None
    return HookRecord(**columns)


def fetch_setup_data(transaction: Transaction, run: str) -> SetupData:
    """The return value of a run's setup; `NO_SETUP` if it has not returned."""
    row = transaction.select_one(
        "SELECT attempt, value FROM hooks WHERE run = ? AND hook = ? AND state = ?",
        run, Hook.SETUP, HookState.DONE,
    )  # fmt: skip
    return NO_SETUP if row is None else SetupData(*row)


def needs_teardown(transaction: Transaction, record: RunRecord) -> bool:
    """Whether the teardown of a run must be called before the run is over.

    It is called once, if its setup has succeeded, or, without a setup, if any lease was ever dealt.
    """
    if Hook.TEARDOWN not in record.spec.hooks:
        return False
    teardown = fetch_hook(transaction, record.run, Hook.TEARDOWN)
    if teardown is not None and teardown.state in _OVER:
        return False
    if Hook.SETUP in record.spec.hooks:
        setup = fetch_hook(transaction, record.run, Hook.SETUP)
        return setup is not None and setup.state == HookState.DONE
    row = transaction.select_one("SELECT leases_cut FROM runs WHERE run = ?", record.run)
    return row is not None and row["leases_cut"] > 0


def is_teardown_due(transaction: Transaction, run: str) -> bool:
    """Whether the run has ended except for its teardown."""
    teardown = fetch_hook(transaction, run, Hook.TEARDOWN)
    return teardown is not None and teardown.end_state is not None and teardown.state not in _OVER


def schedule_teardown(
    transaction: Transaction, run: str, end_state: RunState, end_reason: str, now: float
) -> None:
    """Make a run enter `end_state` after its teardown; the first call wins."""
    transaction.execute(
        "INSERT INTO hooks (run, hook, state, since, end_state, end_reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT DO UPDATE SET state = ?3, since = ?4, tries = 0,"
        " end_state = CASE end_state WHEN '' THEN ?5 ELSE end_state END,"
        " end_reason = CASE end_state WHEN '' THEN ?6 ELSE end_reason END",
        run, Hook.TEARDOWN, HookState.OWED, now, end_state, end_reason,
    )  # fmt: skip


def insert_attempt(
    transaction: Transaction, run: str, hook: Hook, worker: str, incarnation: str, now: float
) -> None:
    """Assign a new attempt at a hook to a process of a worker."""
    transaction.execute(
        "INSERT INTO hooks (run, hook, state, attempt, tries, worker, incarnation, since)"
        " VALUES (?1, ?2, ?3, 1, 1, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET state = ?3, attempt = attempt + 1,"
        " tries = tries + 1, worker = ?4, incarnation = ?5, since = ?6, error = '', traceback = ''",
        run, hook, HookState.BEGUN, worker, incarnation, now,
    )  # fmt: skip


def end_attempt(transaction: Transaction, report: HookReport, state: HookState, now: float) -> None:
    """Record the result of the newest attempt at a hook."""
    transaction.execute(
        "UPDATE hooks SET state = ?, ended_at = ?, error = ?, traceback = ?, value = ?"
        " WHERE run = ? AND hook = ?",
        state, now, report.error, report.traceback, report.value, report.attempt.run, report.attempt.hook,
    )  # fmt: skip


def mark_attempts_lost(transaction: Transaction, run: str) -> None:
    """Mark running attempts as lost."""
    transaction.execute(
        "UPDATE hooks SET state = ? WHERE run = ? AND state = ?", HookState.LOST, run, HookState.BEGUN
    )


def give_up(transaction: Transaction, run: str, hook: Hook, error: str, now: float) -> None:
    """Give up a hook: it is not called any more."""
    transaction.execute(
        "UPDATE hooks SET state = ?, ended_at = ?, error = ? WHERE run = ? AND hook = ?",
        HookState.GIVEN_UP, now, error, run, hook,
    )  # fmt: skip


def give_up_unfinished(transaction: Transaction, run: str, now: float) -> None:
    """Give up the unfinished hooks of a run that is over."""
    transaction.execute(
        "UPDATE hooks SET state = ?, ended_at = ? WHERE run = ? AND state IN (?, ?, ?)",
        HookState.GIVEN_UP, now, run, HookState.OWED, HookState.BEGUN, HookState.LOST,
    )  # fmt: skip


def reset_hooks(transaction: Transaction, run: str) -> None:
    """Make the hooks of a resumed run due again. Their attempts keep counting."""
    transaction.execute(
        "UPDATE hooks SET state = ?, tries = 0, error = '', traceback = '', value = 'null', end_state = '',"
        " end_reason = '', ended_at = NULL WHERE run = ?",
        HookState.OWED, run,
    )  # fmt: skip
