"""The intake of messages: what the ledger makes of each claim and each report.

A lease may be executed more than once when its message was doubled. The first execution that the ledger hears
of, by claim or by report, counts. Every other one is a stray, whose requests were sent again.
"""

import logging

from oku_coordinator.ledger.rules.lifecycle import follow_up
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.account_table import add_report
from oku_coordinator.ledger.tables.lease_table import adopt_execution, close_reported, find_lease, note_stray
from oku_coordinator.ledger.tables.run_table import add_resent, fetch_run, open_window
from oku_coordinator.ledger.tables.slice_table import replace_leased
from oku_core.accounting.interval import settle
from oku_core.accounting.lease_state import ExpiryReason, LeaseState
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.messaging.lease import Claim, Message, Report, find_fault
from oku_core.results.lines import LineKind, build_range_line, build_status_lines

_log = logging.getLogger(__name__)


def take_in(transaction: Transaction, message: Message, now: float) -> MessageVerdict:
    """Enter a claim or a report into the ledger; gives what was made of it."""
    lease = find_lease(transaction, message.lease) if _is_writable(message) else None
    if lease is None:
        return MessageVerdict.UNKNOWN
    if isinstance(message, Claim):
        return _take_claim(transaction, message, lease, now)
    return _take_report(transaction, message, lease, now)


def _take_claim(transaction: Transaction, claim: Claim, lease: LeaseRecord, now: float) -> MessageVerdict:
    if lease.execution == claim.execution:
        return MessageVerdict.REPEATED
    if lease.execution is not None:
        note_stray(transaction, lease, claim.execution, lease.length)
        return MessageVerdict.STRAY
    adopt_execution(transaction, lease, claim)
    if lease.state != LeaseState.ACTIVE:
        _note_unexpected(transaction, lease, claim.execution, lease.length)
        return MessageVerdict.LATE
    open_window(transaction, lease.run, _place_begin(lease, claim.at, now))
    return MessageVerdict.CLAIMED


def _take_report(transaction: Transaction, report: Report, lease: LeaseRecord, now: float) -> MessageVerdict:
    if fault := find_fault(report, lease.start, lease.stop):
        _log.warning(
            "worker %s sent a report on lease %s that cannot be true: %s", report.worker, lease.id, fault,
            extra={"run": lease.run, "lease": lease.id, "worker": report.worker},
        )  # fmt: skip
        return MessageVerdict.UNTRUE
    sent = report.done - report.start
    if lease.execution not in (None, report.execution):
        note_stray(transaction, lease, report.execution, sent)
        return MessageVerdict.STRAY
    if lease.state == LeaseState.REPORTED:
        return MessageVerdict.REPEATED
    if lease.execution is None:
        adopt_execution(transaction, lease, report)
    if lease.state == LeaseState.EXPIRED:
        _note_unexpected(transaction, lease, report.execution, sent)
        return MessageVerdict.LATE
    if fetch_run(transaction, lease.run).state in FINAL_STATES:
        # The run failed with leases out; its account stays as it was found.
        return MessageVerdict.LATE
    _account_for(transaction, report, lease, now)
    return MessageVerdict.ACCOUNTED


def _account_for(transaction: Transaction, report: Report, lease: LeaseRecord, now: float) -> None:
    if report.done > report.start:
        open_window(transaction, lease.run, _place_begin(lease, report.started_at, now))
    pieces = settle(lease.start, lease.stop, report.done, report.unfinished)
    replace_leased(transaction, lease.run, (lease.start, lease.stop), pieces)
    add_report(transaction, lease.run, report, now)
    add_resent(transaction, lease.run, len(report.unfinished))
    close_reported(transaction, lease, report.covered, now)
    if report.covered:
        outbox_table.put(transaction, lease.run, LineKind.RANGE, now, [build_range_line(lease.id, report)])
        outbox_table.put(transaction, lease.run, LineKind.STATUS, now, build_status_lines(report))
    follow_up(transaction, lease.run, now)


def _note_unexpected(transaction: Transaction, lease: LeaseRecord, execution: str, sent: int) -> None:
    """When a lease was taken back, its requests were counted as resent, unless nobody seemed to have it."""
    if lease.reason == ExpiryReason.NOT_SENT:
        note_stray(transaction, lease, execution, sent)


def _place_begin(lease: LeaseRecord, worker_time: float, now: float) -> float:
    """When a worker began, by its own clock, but not before the lease was cut and not after now."""
    return min(now, max(lease.cut_at, worker_time))


def _is_writable(message: Message) -> bool:
    """Whether the ledger can store the names in a message: JSON can carry text that UTF-8 cannot encode."""
    try:
        f"{message.lease} {message.execution} {message.worker} {message.incarnation}".encode()
    except UnicodeEncodeError:
        return False
    return True
