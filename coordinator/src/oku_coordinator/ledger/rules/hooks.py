"""The hooks of a run: one worker calls `setup` before its first lease, another `teardown` at its end.

The ledger records the current attempt before its worker receives the order. A report counts once, if it
belongs to that attempt and comes from that process; any other report changes nothing.
"""

from collections.abc import Iterable

from oku_coordinator.ledger.rules.lifecycle import enter_state
from oku_coordinator.ledger.storage.records import HookRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import hook_table
from oku_coordinator.ledger.tables.history_table import record_event
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_state
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.messaging.hook import HookAttempt, HookReport
from oku_core.results.event import Event, EventType
from oku_core.spec.spec import Hook
from oku_core.summary.summary import HookState

MOST_TRIES = 5
"""A hook has failed after this many attempts in a row whose worker or process was lost."""
_STATES = {Hook.SETUP: RunState.RUNNING, Hook.TEARDOWN: RunState.TEARING_DOWN}
"""The state of a run in which a hook is called."""


def start_attempt(
    transaction: Transaction, run: str, hook: Hook, worker: str, incarnation: str, now: float
) -> HookRecord | None:
    """Assign a new attempt to a process of a worker; None if the run no longer needs one."""
    before = hook_table.fetch_hook(transaction, run, hook)
    if fetch_state(transaction, run) != _STATES[hook] or (before and before.is_settled):
        return None
    hook_table.insert_attempt(transaction, run, hook, worker, incarnation, now)
    record = hook_table.fetch_hook(transaction, run, hook)
    assert record is not None
    again = f", attempt {record.tries}" if record.tries > 1 else ""
    text = f"worker {worker} calls {hook}{again}"
    record_event(transaction, run, Event(at=now, type=EventType.HOOK_BEGUN, text=text, worker=worker))
    return record


def record_report(
    transaction: Transaction, worker: str, incarnation: str, report: HookReport, now: float
) -> bool:
    """Record the result of an attempt; returns whether it counts."""
    run, hook = report.attempt.run, report.attempt.hook
    record = hook_table.fetch_hook(transaction, run, hook)
    if (
        record is None
        or record.state != HookState.BEGUN
        or (record.attempt, record.worker, record.incarnation) != (report.attempt.number, worker, incarnation)
        or fetch_state(transaction, run) is None  # it was deleted, and its hooks are still being removed
    ):
        return False
    _settle(transaction, record, report, now)
    return True


def lose_attempt(transaction: Transaction, attempt: HookAttempt, why: str, now: float) -> None:
    """Record that the worker of an attempt is lost; does nothing if the attempt has ended meanwhile."""
    record = hook_table.fetch_hook(transaction, attempt.run, attempt.hook)
    if record is not None and record.state == HookState.BEGUN and record.attempt == attempt.number:
        _settle(transaction, record, HookReport(attempt=attempt, error=why, is_lost=True), now)


def give_up_teardown(transaction: Transaction, run: str, why: str, now: float) -> None:
    """End a run that waits for its teardown without it; does nothing for any other."""
    if fetch_state(transaction, run) != RunState.TEARING_DOWN:
        return
    hook_table.give_up(transaction, run, Hook.TEARDOWN, why, now)
    _record_end(transaction, run, f"teardown {why}", now)
    _end(transaction, run, f"teardown {why}", now)


def _settle(transaction: Transaction, record: HookRecord, report: HookReport, now: float) -> None:
    hook, run = record.hook, report.attempt.run
    if report.is_lost and record.tries < MOST_TRIES:
        hook_table.end_attempt(transaction, report, HookState.LOST, now)
        _record_end(transaction, run, f"{hook} will be called again: {report.error}", now, record.worker)
        return
    error = report.error
    if report.is_lost:
        error = f"it was begun {record.tries} times and never ended: {error}"
    hook_table.end_attempt(transaction, report, HookState.FAILED if error else HookState.DONE, now)
    outcome = f"failed: {error}" if error else "is done"
    _record_end(transaction, run, f"{hook} {outcome}", now, record.worker)
    if hook == Hook.TEARDOWN:
        _end(transaction, run, f"teardown {outcome}" if error else "", now)
    elif error and fetch_state(transaction, run) not in FINAL_STATES:
        enter_state(transaction, run, RunState.FAILED, now, f"setup {outcome}")


def _end(transaction: Transaction, run: str, trouble: str, now: float) -> None:
    """Enter the end state of a run after its teardown, with any result."""
    teardown = hook_table.fetch_hook(transaction, run, Hook.TEARDOWN)
    if teardown is None or teardown.end_state is None or fetch_run(transaction, run).is_at_rest:
        return
    reason = "; ".join(filter(None, (teardown.end_reason, trouble)))
    enter_state(transaction, run, teardown.end_state, now, reason)


def _record_end(transaction: Transaction, run: str, text: str, now: float, worker: str | None = None) -> None:
    record_event(transaction, run, Event(at=now, type=EventType.HOOK_ENDED, text=text, worker=worker))


def find_void_attempts(
    transaction: Transaction, held: Iterable[tuple[str, HookAttempt]]
) -> list[tuple[str, HookAttempt]]:
    """Find the void ones among attempts, each with the incarnation that has it."""
    return [each for each in held if not _is_current(transaction, *each)]


def _is_current(transaction: Transaction, incarnation: str, attempt: HookAttempt) -> bool:
    record = hook_table.fetch_hook(transaction, attempt.run, attempt.hook)
    return (
        record is not None
        and record.state == HookState.BEGUN
        and (record.attempt, record.incarnation) == (attempt.number, incarnation)
    )


def is_returned(transaction: Transaction, incarnation: str, attempt: HookAttempt) -> bool:
    """Whether the ledger has the result of an attempt, as reported by its process."""
    record = hook_table.fetch_hook(transaction, attempt.run, attempt.hook)
    return (
        record is not None
        and (record.attempt, record.incarnation) == (attempt.number, incarnation)
        and record.state in (HookState.DONE, HookState.FAILED)
    )


def list_holders(transaction: Transaction, run: str) -> list[tuple[str, str]]:
    """The processes with a running attempt at a hook of a run, as incarnation and worker."""
    return [
        (record.incarnation, record.worker)
        for record in hook_table.fetch_hooks(transaction, run)
        if record.state == HookState.BEGUN
    ]
