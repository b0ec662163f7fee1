"""The course of a run: how it enters its states, and the windows of time in which it was active.

A window opens when a worker begins, and closes when the run leaves the active states.
"""

from oku_coordinator.ledger.history_table import note
from oku_coordinator.ledger.run_table import fetch_run
from oku_coordinator.ledger.slice_table import sum_lengths
from oku_coordinator.ledger.transaction import Transaction
from oku_core.accounting.run_state import (
    ACTIVE_STATES,
    FINAL_STATES,
    RunState,
    TransitionError,
    check_transition,
)
from oku_core.results.event import Event, EventType

_CLOSING_STATES = {RunState.PAUSING: RunState.PAUSED, RunState.CANCELLING: RunState.CANCELLED}


def enter_state(transaction: Transaction, run: str, state: RunState, now: float, reason: str = "") -> None:
    """Put a run into another state; `TransitionError` when it cannot get there from where it is."""
    record = fetch_run(transaction, run)
    check_transition(run, record.state, state)
    if record.is_broken:
        raise TransitionError(run, record.state, state)  # its account cannot be gone on with
    transaction.execute(
        "UPDATE runs SET state = ?, reason = ?, ended_at = ? WHERE run = ?",
        state, reason, now if state in FINAL_STATES else None, run,
    )  # fmt: skip
    if state == RunState.PENDING:
        # What the servers counted holds for a run at rest only; this one will send again.
        transaction.execute("UPDATE runs SET queued_at = ?, served = NULL WHERE run = ?", now, run)
    if state not in ACTIVE_STATES:
        close_window(transaction, run, now)
    _note_state(transaction, run, state, now, reason)
    transaction.touched.add(run)
    transaction.tallies.pop(run, None)  # so that all of it is checked


def note_submission(transaction: Transaction, run: str, now: float) -> None:
    """A run was entered: it begins pending."""
    _note_state(transaction, run, RunState.PENDING, now, "")


def requeue(transaction: Transaction, run: str, now: float, reason: str) -> None:
    """Put a pending run behind all others that wait; nothing if it is not pending any more."""
    if fetch_run(transaction, run).state != RunState.PENDING:
        return
    transaction.execute("UPDATE runs SET queued_at = ? WHERE run = ?", now, run)
    text = f"the run gives its turn to the next: {reason}"
    note(transaction, run, Event(at=now, type=EventType.TURN_GIVEN, text=text, reason=reason))


def follow_up(transaction: Transaction, run: str, now: float) -> None:
    """Enter the state that follows by itself once nothing is out or nothing is left."""
    record = fetch_run(transaction, run)
    if record.state not in ACTIVE_STATES:
        return
    lengths = sum_lengths(transaction, run)
    if lengths.accounted == record.spec.requests:
        enter_state(transaction, run, RunState.COMPLETED, now)
    elif lengths.leased == 0 and record.state in _CLOSING_STATES:
        enter_state(transaction, run, _CLOSING_STATES[record.state], now)


def fail(transaction: Transaction, run: str, reason: str, now: float) -> None:
    """Record that a check found a breach, past all transitions and checks; a run that is over stays so."""
    if fetch_run(transaction, run).state in FINAL_STATES:
        return
    transaction.execute(
        "UPDATE runs SET state = ?, reason = ?, is_broken = 1, ended_at = ? WHERE run = ?",
        RunState.FAILED, reason, now, run,
    )  # fmt: skip
    close_window(transaction, run, now)
    _note_state(transaction, run, RunState.FAILED, now, reason)


def open_window(transaction: Transaction, run: str, begun_at: float) -> None:
    """A worker has begun; counts only for an active run without an open window."""
    transaction.execute(
        "UPDATE runs SET active_since = ?1, windows = windows + 1, started_at = coalesce(started_at, ?1)"
        " WHERE run = ?2 AND active_since IS NULL AND state IN ('running', 'pausing', 'cancelling')",
        begun_at, run,
    )  # fmt: skip


def close_window(transaction: Transaction, run: str, ended_at: float | None) -> None:
    """End the open window, if there is one; None says that nothing came of it."""
    transaction.execute(
        "UPDATE runs SET active_s = active_s + max(0, coalesce(?1, active_since) - active_since),"
        " active_since = NULL WHERE run = ?2 AND active_since IS NOT NULL",
        ended_at, run,
    )  # fmt: skip


def _note_state(transaction: Transaction, run: str, state: RunState, now: float, reason: str) -> None:
    text = f"the run is {state}: {reason}" if reason else f"the run is {state}"
    event = Event(at=now, type=EventType.STATE, text=text, state=state, reason=reason or None)
    note(transaction, run, event)
    if fetch_run(transaction, run).is_at_rest:
        transaction.execute("UPDATE runs SET owes_summary = is_published WHERE run = ?", run)
