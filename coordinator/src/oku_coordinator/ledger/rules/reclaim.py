"""Takes leases back: single ones, all of a run that is given up, and those of a stack that was killed."""

from oku_coordinator.ledger.rules.lifecycle import enter_state, follow_up
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.account_table import note_lost_worker
from oku_coordinator.ledger.tables.history_table import note
from oku_coordinator.ledger.tables.lease_table import close_expired, fetch_active_leases, find_lease
from oku_coordinator.ledger.tables.run_table import add_resent, close_window, fetch_run
from oku_coordinator.ledger.tables.slice_table import replace_leased
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.results.event import Event, EventType


def expire_lease(transaction: Transaction, name: str, reason: ExpiryReason, now: float) -> bool:
    """Make the range of an active lease pending again; False when it is not active or its run is over."""
    lease = find_lease(transaction, name)
    if lease is None or lease.state != LeaseState.ACTIVE:
        return False
    if fetch_run(transaction, lease.run).state in FINAL_STATES:
        return False
    if reason == ExpiryReason.NOT_SENT:
        if lease.execution is not None:
            return False  # the broker took it after all; only its answer was lost
    else:
        add_resent(transaction, lease.run, lease.length)
    if reason == ExpiryReason.WORKER_LOST and lease.worker is not None:
        note_lost_worker(transaction, lease.run, lease.worker, lease.length)
    pending = Slice(lease.start, lease.stop, SliceState.PENDING)
    replace_leased(transaction, lease.run, (lease.start, lease.stop), [pending])
    close_expired(transaction, lease, reason, now)
    note(transaction, lease.run, _build_event(lease, reason, now))
    follow_up(transaction, lease.run, now)
    return True


def _build_event(lease: LeaseRecord, reason: ExpiryReason, now: float) -> Event:
    holder = f" from worker {lease.worker}" if lease.worker else ""
    why = reason.replace("_", " ")
    return Event(
        at=now, type=EventType.LEASE_EXPIRED, lease=lease.id, worker=lease.worker, reason=reason,
        start=lease.start, stop=lease.stop, requests=lease.length,
        text=f"requests {lease.start:,} to {lease.stop - 1:,} were taken back{holder}: {why}",
    )  # fmt: skip


def park_run(transaction: Transaction, run: str, now: float, *, goes_on: bool) -> None:
    """Take back the leases of a killed stack and pause the run, unless it goes on at once.

    The open window of activity ends with the last report that came.
    """
    record = fetch_run(transaction, run)
    if record.is_at_rest:
        return
    close_window(transaction, run, record.last_report_at)
    for lease in fetch_active_leases(transaction, run):
        expire_lease(transaction, lease.id, ExpiryReason.STACK_LOST, now)
    if not goes_on and not fetch_run(transaction, run).is_at_rest:
        enter_state(transaction, run, RunState.PAUSED, now, ExpiryReason.STACK_LOST)


def give_up_run(transaction: Transaction, run: str, state: RunState, now: float, reason: str) -> None:
    """Take back all leases of a running run, and put it into a state of rest."""
    if fetch_run(transaction, run).state != RunState.RUNNING:
        return
    for lease in fetch_active_leases(transaction, run):
        is_claimed = lease.execution is not None
        why = ExpiryReason.REPORT_LOST if is_claimed else ExpiryReason.NOT_SENT
        expire_lease(transaction, lease.id, why, now)
    enter_state(transaction, run, state, now, reason)
