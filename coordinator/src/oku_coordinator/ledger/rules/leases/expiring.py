"""Expires leases: single ones, all leases of a run that is given up, and the leases of a killed stack."""

from collections.abc import Callable, Iterable, Sequence

from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.leases import closing
from oku_coordinator.ledger.rules.leases.unsent import account_lost
from oku_coordinator.ledger.rules.lifecycle import enter_next_state, enter_state
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.accounts.work_table import record_lost_worker
from oku_coordinator.ledger.tables.history_table import record_event
from oku_coordinator.ledger.tables.hook_table import mark_attempts_lost
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases, fetch_resent, find_lease
from oku_coordinator.ledger.tables.run_table import close_period, fetch_run, fetch_state
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.results.event import Event, EventType

FindLost = Callable[[LeaseRecord, Sequence[Range]], Iterable[Range]]
"""Selects the ranges of a lease that may have been sent and are too late to repeat."""


FindReached = Callable[[LeaseRecord], int | None]
"""The first position of a lease that was certainly not taken; None if only its limit is known."""


def find_no_record(_lease: LeaseRecord) -> int | None:
    """The rule without flight records: only the limit is known."""
    return None


def find_nothing(_lease: LeaseRecord, _ranges: Sequence[Range]) -> Iterable[Range]:
    """The rule without due times: everything is sent again."""
    return ()


def expire_leases(
    transaction: Transaction,
    names: Iterable[str],
    reason: ExpiryReason,
    now: float,
    find_lost: FindLost = find_nothing,
    find_reached: FindReached = find_no_record,
) -> list[str]:
    """Expire open leases: uncovered positions are pending again, or accounted as lost.

    Leases that are not open, and leases of runs that are over, are left alone.

    Returns:
        The expired leases.
    """
    runs: dict[str, None] = {}
    taken: list[str] = []
    for name in names:
        lease = _find_open(transaction, name)
        if lease is None:
            continue
        at_risk = _expire(transaction, lease, reason, now, find_reached)
        if lost := list(find_lost(lease, at_risk)):
            account_lost(transaction, lease.run, lost, now)
        runs[lease.run] = None
        taken.append(name)
    for run in runs:
        enter_next_state(transaction, run, now)
    return taken


def _find_open(transaction: Transaction, name: str) -> LeaseRecord | None:
    """An open lease of a run that is not over."""
    lease = find_lease(transaction, name)
    if lease is None or lease.state != LeaseState.ACTIVE:
        return None
    return None if fetch_state(transaction, lease.run) in FINAL_STATES else lease


def _expire(
    transaction: Transaction,
    lease: LeaseRecord,
    reason: ExpiryReason,
    now: float,
    find_reached: FindReached = find_no_record,
) -> list[Range]:
    """Expire a lease; returns the ranges that may have been sent without being accounted."""
    reached = find_reached(lease)
    held = lease if reached is None else closing.shorten_to_reached(transaction, lease, reached)
    closing.expire_lease(transaction, held, reason, now)
    freed = lease.end - lease.covered
    if reason == ExpiryReason.WORKER_LOST:
        record_lost_worker(transaction, lease.run, lease.worker, freed)
    record_event(transaction, lease.run, _build_event(lease, freed, reason, now))
    return held.list_at_risk()


def _build_event(lease: LeaseRecord, freed: int, reason: ExpiryReason, now: float) -> Event:
    why = reason.replace("_", " ")
    return Event(
        at=now, type=EventType.LEASE_EXPIRED, lease=lease.id, worker=lease.worker, reason=reason,
        start=lease.start, stop=lease.stop, requests=freed,
        text=f"{freed:,} requests between {lease.start:,} and {lease.stop - 1:,} were taken back"
        f" from worker {lease.worker}: {why}",
    )  # fmt: skip


def lower_resent_of_dead(
    transaction: Transaction, run: str, incarnations: Iterable[str], find_reached: FindReached
) -> int:
    """Recount the requests of expired leases that may have been sent, with newer knowledge.

    Args:
        transaction: to write in.
        run: the id of the run; at rest, its figures stay.
        incarnations: the processes that had the leases.
        find_reached: finds the positions that they reached.

    Returns:
        The decrease of `resent_at_most`.
    """
    if fetch_run(transaction, run).is_at_rest:
        return 0
    lowered = 0
    for lease in fetch_resent(transaction, run, incarnations):
        if (reached := find_reached(lease)) is not None:
            lowered += closing.lower_resent(transaction, lease, reached)
    return lowered


def shorten_to_limits(transaction: Transaction, names: Iterable[str]) -> list[LeaseRecord]:
    """Shorten open leases to their limits; returns the shortened ones."""
    shorter: list[LeaseRecord] = []
    for name in names:
        lease = _find_open(transaction, name)
        if lease is not None and lease.bound < lease.end:
            shorter.append(closing.shorten_lease(transaction, lease, lease.bound))
    return shorter


def pause_interrupted_run(transaction: Transaction, run: str, now: float, *, goes_on: bool) -> None:
    """Expire the leases of a killed stack and pause the run, unless it continues at once.

    The open period of activity and its schedule end with the last checkpoint: later requests are due again
    when the run continues.
    """
    record = fetch_run(transaction, run)
    if record.is_at_rest:
        return
    lifecycle.stop_clock(transaction, record, record.last_checkpoint_at or 0.0)
    close_period(transaction, run, record.last_checkpoint_at)
    for lease in fetch_open_leases(transaction, run):
        _expire(transaction, lease, ExpiryReason.STACK_LOST, now)
    mark_attempts_lost(transaction, run)
    enter_next_state(transaction, run, now)
    if not goes_on and not fetch_run(transaction, run).is_at_rest:
        enter_state(transaction, run, RunState.PAUSED, now, ExpiryReason.STACK_LOST)


def give_up_run(transaction: Transaction, run: str, state: RunState, now: float, reason: str) -> None:
    """Expire all leases of a running run, and put it into a state of rest."""
    if fetch_run(transaction, run).state != RunState.RUNNING:
        return
    for lease in fetch_open_leases(transaction, run):
        why = ExpiryReason.DROPPED if lease.sequence else ExpiryReason.NOT_TAKEN
        _expire(transaction, lease, why, now)
    enter_state(transaction, run, state, now, reason)
