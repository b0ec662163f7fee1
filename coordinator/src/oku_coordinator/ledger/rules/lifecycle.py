"""The lifecycle of a run: how it enters the states of `oku_core.accounting.run_state`, each with its event.

A period of activity opens when a worker starts, and closes when the run leaves the active states. The clock
of a schedule stops half a second after the order, so that all workers stop at the same time.
"""

from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import hook_table, run_table, schedule_table, submission_table
from oku_coordinator.ledger.tables.accounts import series_table, work_table
from oku_coordinator.ledger.tables.history_table import record_event
from oku_coordinator.ledger.tables.lease_table import has_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.ledger.tables.schedule_table import forget_waves
from oku_coordinator.ledger.tables.slice_table import insert_slices, mark_pending_unused, sum_lengths
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.run_state import (
    FINAL_STATES,
    SENDING_STATES,
    RunState,
    TransitionError,
    check_transition,
)
from oku_core.results.event import Event, EventType
from oku_core.spec.spec import Spec
from oku_core.spec.spec_digest import digest_spec
from oku_core.summary.validity import Flag

STOP_AHEAD_S = 0.5
"""How long in advance workers learn the end of a period."""
_REPORTED_WITHIN_S = 1.0
"""A stopped run reports its last request within this time; an older one was followed by a silence."""
_CLOSING_STATES = {RunState.PAUSING: RunState.PAUSED, RunState.CANCELLING: RunState.CANCELLED}


def create_run(
    transaction: Transaction, run: str, spec: Spec, now: float, key: str | None = None
) -> RunRecord:
    """Insert a new run; its whole request space is pending.

    Args:
        transaction: to write in.
        run: its id.
        spec: its spec.
        now: Unix time.
        key: its idempotency key, if any, which is new.
    """
    run_table.insert_run(transaction, run, spec, now)
    insert_slices(transaction, run, [Slice(0, spec.requests, SliceState.PENDING)])
    record_submission(transaction, run, now)
    if key is not None:
        submission_table.insert_key(transaction, key, digest_spec(spec), run)
    return fetch_run(transaction, run)


def change_state(
    transaction: Transaction, run: str, state: RunState, now: float, reason: str = ""
) -> RunRecord:
    """Put a run into another state, and then into the automatic next one.

    Raises:
        UnknownRunError: there is no such run.
        TransitionError: the transition is not allowed.
    """
    if state == RunState.PENDING:
        run_table.set_published(transaction, run)
    enter_state(transaction, run, state, now, reason)
    enter_next_state(transaction, run, now)
    return fetch_run(transaction, run)


def start_run(
    transaction: Transaction, run: str, now: float, missing: int = 0, reason: str = ""
) -> RunRecord:
    """Start a pending run; the reason is recorded if it starts without some of its workers.

    Raises:
        UnknownRunError: there is no such run.
        TransitionError: it is no longer pending.
    """
    enter_state(transaction, run, RunState.RUNNING, now)
    if hook_table.is_teardown_due(transaction, run):
        enter_state(transaction, run, RunState.TEARING_DOWN, now)
    elif missing:
        record_missing_workers(transaction, run, now, missing, reason)
    return fetch_run(transaction, run)


def end_time(transaction: Transaction, run: str, now: float) -> bool:
    """Complete an active run with a time limit: its accounted requests were all of it.

    Returns:
        Whether the run is over. While leases are open, nothing changes; a due teardown is called first.
    """
    record = fetch_run(transaction, run)
    if record.state not in SENDING_STATES or not record.spec.is_timed or has_open_leases(transaction, run):
        return record.state in FINAL_STATES
    mark_rest_unused(transaction, run)
    enter_next_state(transaction, run, now)
    return run_table.fetch_state(transaction, run) in FINAL_STATES


def check_entry(record: RunRecord, state: RunState) -> None:
    """Check whether a run may enter another state; `TransitionError` if not."""
    check_transition(record.run, record.state, state)
    if record.is_broken:
        raise TransitionError(record.run, record.state, state)  # its account is wrong, and stays so


def enter_state(transaction: Transaction, run: str, state: RunState, now: float, reason: str = "") -> None:
    """Put a run into another state; `TransitionError` if that is not allowed.

    A run with a due teardown enters `tearing_down` before its end.
    """
    record = fetch_run(transaction, run)
    check_entry(record, state)
    run_table.add_queued_time(transaction, run, now)
    is_complete = state == RunState.COMPLETED
    if state in FINAL_STATES and hook_table.needs_teardown(transaction, record):
        _schedule_teardown(transaction, record, state, now, reason)
        state = RunState.TEARING_DOWN
    run_table.write_state(transaction, run, state, reason, ended_at=now if state in FINAL_STATES else None)
    if state == RunState.PENDING:
        run_table.move_to_queue_end(transaction, run, now)
        run_table.forget_served(transaction, run)
        if record.state == RunState.FAILED:
            hook_table.reset_hooks(transaction, run)
    if state in FINAL_STATES:
        hook_table.give_up_unfinished(transaction, run, now)
    if state in _CLOSING_STATES:
        stop_clock(transaction, record, now + STOP_AHEAD_S)
    if state not in SENDING_STATES:
        end_active_period(transaction, record, now, is_complete=is_complete)
    if state in (RunState.COMPLETED, RunState.CANCELLED):
        forget_waves(transaction, run)
    if state == RunState.CANCELLED and record.spec.is_timed:
        mark_rest_unused(transaction, run)
    _record_state(transaction, run, state, now, reason)
    transaction.touched.add(run)
    transaction.tallies.pop(run, None)  # so that all of it is checked


def _schedule_teardown(
    transaction: Transaction, record: RunRecord, end_state: RunState, now: float, reason: str
) -> None:
    """Store the state of a run after its teardown; without a turn, it waits for the active runs."""
    check_transition(record.run, record.state, RunState.TEARING_DOWN)
    hook_table.schedule_teardown(transaction, record.run, end_state, reason, now)
    if record.state not in SENDING_STATES:
        run_table.move_to_queue_end(transaction, record.run, now)


def mark_rest_unused(transaction: Transaction, run: str) -> None:
    """Mark pending requests as unused: the accounted ones were all of the run."""
    mark_pending_unused(transaction, run)
    run_table.set_requests(transaction, run, sum_lengths(transaction, run).accounted)


def record_submission(transaction: Transaction, run: str, now: float) -> None:
    """Record that a run was submitted; it starts as pending."""
    _record_state(transaction, run, RunState.PENDING, now, "")


def requeue(transaction: Transaction, run: str, now: float, reason: str) -> None:
    """Move a pending run to the end of the queue; does nothing for any other."""
    if fetch_run(transaction, run).state != RunState.PENDING:
        return
    run_table.add_queued_time(transaction, run, now)
    run_table.move_to_queue_end(transaction, run, now)
    transaction.accounts.pop(run, None)  # or the accounts of the whole queue would be in memory
    text = f"the run passes its turn to the next: {reason}"
    record_event(transaction, run, Event(at=now, type=EventType.TURN_GIVEN, text=text, reason=reason))


def record_missing_workers(transaction: Transaction, run: str, now: float, missing: int, reason: str) -> None:
    """Record that a run starts without some of its workers."""
    work_table.add_flag(transaction, run, Flag.WORKERS_MISSING, 0, missing)
    text = f"the run starts with {reason}"
    record_event(transaction, run, Event(at=now, type=EventType.WORKERS_MISSING, text=text, reason=reason))


def enter_next_state(transaction: Transaction, run: str, now: float) -> None:
    """Enter the automatic next state once no lease is open."""
    record = fetch_run(transaction, run)
    if record.state not in SENDING_STATES:
        return
    if has_open_leases(transaction, run):
        return
    if sum_lengths(transaction, run).accounted == record.requests:
        enter_state(transaction, run, RunState.COMPLETED, now)
    elif record.state in _CLOSING_STATES:
        _enter_rest(transaction, record, now)


def _enter_rest(transaction: Transaction, record: RunRecord, now: float) -> None:
    """Enter the state after a closing one; a pause for a reason is a failure if nothing was ok."""
    has_failed = record.state == RunState.PAUSING and bool(record.reason) and not record.outcomes[0]
    state = RunState.FAILED if has_failed else _CLOSING_STATES[record.state]
    enter_state(transaction, record.run, state, now, record.reason)


def fail(transaction: Transaction, run: str, reason: str, now: float) -> None:
    """Fail a run because of a breach, from any state; a run that is over stays as it is."""
    record = fetch_run(transaction, run)
    if record.state in FINAL_STATES:
        return
    run_table.add_queued_time(transaction, run, now)
    run_table.write_state(transaction, run, RunState.FAILED, reason, ended_at=now)
    hook_table.give_up_unfinished(transaction, run, now)
    run_table.mark_broken(transaction, run)
    end_active_period(transaction, record, now, is_complete=False)
    _record_state(transaction, run, RunState.FAILED, now, reason)


def _record_state(transaction: Transaction, run: str, state: RunState, now: float, reason: str) -> None:
    text = f"the run is {state}: {reason}" if reason else f"the run is {state}"
    event = Event(at=now, type=EventType.STATE, text=text, state=state, reason=reason or None)
    record_event(transaction, run, event)
    if fetch_run(transaction, run).is_at_rest:
        run_table.schedule_summary(transaction, run)


def stop_clock(transaction: Transaction, record: RunRecord, at: float) -> None:
    """Stop the clock of a run at a Unix time, or at its time limit; a stopped one stays as it is."""
    period = schedule_table.fetch_period(transaction, record.run)
    if period is not None:
        schedule_table.stop_period(transaction, record.run, _bound(record, period, at))


def end_active_period(transaction: Transaction, record: RunRecord, now: float, *, is_complete: bool) -> None:
    """Close the open period of activity, if there is one, and stop its clock.

    Args:
        transaction: to write in.
        record: the run as it was before it was stopped.
        now: Unix time.
        is_complete: whether all requests of the run are accounted.
    """
    ended_at, period = now, schedule_table.fetch_period(transaction, record.run)
    if period is not None:
        stopped_at = period.find_end()
        ended_at = _bound(record, period, now if stopped_at is None else min(now, stopped_at))
    last_at = record.last_ended_at
    if record.active_since is not None and last_at is not None and last_at > record.active_since:
        is_last = is_complete and _ends_with_request(record)
        if is_last or (period is None and now - last_at < _REPORTED_WITHIN_S):
            ended_at = min(ended_at, last_at)
        if is_complete and record.spec.is_open and ended_at < now:
            late_until = series_table.find_sent_until(transaction, record.run)
            ended_at = max(ended_at, min(now, last_at, late_until))
    schedule_table.stop_period(transaction, record.run, ended_at)
    run_table.close_period(transaction, record.run, ended_at)


def _ends_with_request(record: RunRecord) -> bool:
    """Whether a complete run has reached its last request before its time limit."""
    if record.spec.is_open:
        return False  # its schedule says how long it lasts
    return record.spec.length_s is None or record.requests == record.spec.requests


def _bound(record: RunRecord, period: PeriodRecord, at: float) -> float:
    """A time, at most the time limit of a run."""
    length_s = record.spec.length_s
    return at if length_s is None else min(at, period.build_period().unix_time(float(length_s)))
