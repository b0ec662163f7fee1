"""Ends and shortens leases: covered positions become accounted slices, the rest is pending again."""

from collections.abc import Iterator, Sequence

import msgspec

from oku_coordinator.ledger.rules.failed_requests import keep_failed
from oku_coordinator.ledger.storage.lease_records import LeaseRecord, pack_positions
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table, outbox_table, slice_table
from oku_coordinator.ledger.tables.accounts import inner_table
from oku_coordinator.ledger.tables.run_table import add_resent, fetch_run
from oku_coordinator.ledger.tables.slice_table import fetch_slices, replace_leased
from oku_core.accounting.index_ranges import Range, is_in_ranges
from oku_core.accounting.interval import Slice, SliceState, release, settle
from oku_core.accounting.lease_state import ExpiryReason, LeaseSpan, LeaseState
from oku_core.results.lines import LineKind, build_inner_range_lines, build_range_lines, build_status_lines

_MOST_LISTED = 20_000
"""In a lease with more positions at risk, unsent ones count as sent: its row would grow too large."""


def shorten_lease(transaction: Transaction, lease: LeaseRecord, end: int) -> LeaseRecord:
    """Make the positions of an open lease from `end` on pending again; returns the written lease."""
    replace_leased(transaction, lease.run, release(lease.ranges, lease.end, end))
    shorter = msgspec.structs.replace(lease, end=end)
    lease_table.write_growth(transaction, shorter)
    return shorter


def shorten_to_reached(transaction: Transaction, lease: LeaseRecord, reached: int) -> LeaseRecord:
    """Shorten an open lease of a dead process to its reached position; returns the lease."""
    end = max(lease.done, min(reached, lease.end))
    return lease if end >= lease.bound else shorten_lease(transaction, lease, end)


def lower_resent(
    transaction: Transaction, lease: LeaseRecord, reached: int, unsent: Sequence[Range] = ()
) -> int:
    """Recount the requests of an expired lease that may have been sent, with newer knowledge.

    Args:
        transaction: to write in.
        lease: the lease, as it expired.
        reached: the first position that was certainly not taken, and never will be.
        unsent: positions below it that were taken and certainly not sent, as ranges in rising order.

    Returns:
        The decrease of `resent_at_most`.
    """
    end = max(lease.done, min(reached, lease.bound))
    known = msgspec.structs.replace(lease, end=end)
    if unsent and known.bound - known.done <= _MOST_LISTED:
        known = _mark_untouched(known, unsent)
    if (lowered := lease.at_risk - known.at_risk) <= 0:
        return 0
    lease_table.write_resent(transaction, known)
    add_resent(transaction, lease.run, -lowered)
    return lowered


def _mark_untouched(lease: LeaseRecord, unsent: Sequence[Range]) -> LeaseRecord:
    """The lease with all positions at risk in flight, and these positions untouched."""
    in_flight = sorted({*lease.in_flight, *range(lease.done, lease.bound)})
    left_out = (each for each in in_flight if is_in_ranges(each, unsent))
    untouched = sorted({*lease.untouched, *left_out})
    return msgspec.structs.replace(
        lease, done=lease.bound, in_flight=pack_positions(in_flight), untouched=pack_positions(untouched)
    )


def close(transaction: Transaction, lease: LeaseRecord, now: float) -> None:
    """End a lease after its worker's final checkpoint; positions still in flight were given back.

    Requests in flight may have been sent, unless they are listed as unsent; untaken ones were not sent.
    """
    closed = msgspec.structs.replace(lease, state=LeaseState.CLOSED)
    _end(transaction, closed, lease.sent_in_flight, now)


def expire_lease(transaction: Transaction, lease: LeaseRecord, reason: ExpiryReason, now: float) -> None:
    """End a lease without a final checkpoint; its worker may have sent everything below its limit."""
    expired = msgspec.structs.replace(lease, state=LeaseState.EXPIRED, reason=reason)
    _end(transaction, expired, lease.at_risk, now)


def _end(transaction: Transaction, lease: LeaseRecord, resent: int, now: float) -> None:
    settled = settle(lease.ranges, lease.end, lease.done, lease.in_flight)
    replace_leased(transaction, lease.run, settled)
    _put_lines(transaction, lease, now)
    if lease.covered:
        keep_failed(transaction, lease)
    lease_table.write_end(transaction, lease, resent, now)
    if resent:
        add_resent(transaction, lease.run, resent)


def list_covered(lease: LeaseRecord) -> Iterator[Slice]:
    """The slices of an open lease if its covered positions were accounted; the rest is leased."""
    for _, pieces in settle(lease.ranges, lease.end, lease.done, lease.in_flight):
        for start, stop, state in pieces:
            yield Slice(start, stop, SliceState.LEASED if state == SliceState.PENDING else state)


def _put_lines(transaction: Transaction, lease: LeaseRecord, now: float) -> None:
    if not lease.done or not outbox_table.is_published(transaction, lease.run):
        return
    accounted_stop = lease.ranges.index_at(lease.done - 1) + 1
    span = LeaseSpan(
        id=lease.id, worker=lease.worker, start=lease.start, stop=accounted_stop, state=lease.state,
        reason=lease.reason, covered=lease.covered, cut_at=lease.cut_at, closed_at=now,
    )  # fmt: skip
    inner = inner_table.fetch_inner_parts(transaction, lease).values()
    outbox_table.put(transaction, lease.run, LineKind.INNER_RANGE, now, build_inner_range_lines(span, inner))
    if lease.covered:
        parts = list(lease_table.fetch_parts(transaction, lease).values())
        lines = build_range_lines(span, lease.figures, parts)
        outbox_table.put(transaction, lease.run, LineKind.RANGE, now, lines)
        status_lines = build_status_lines(lease.worker, parts)
        outbox_table.put(transaction, lease.run, LineKind.STATUS, now, status_lines)


def fetch_coverage(transaction: Transaction, run: str) -> list[Slice]:
    """The request space of a run with accounted positions in open leases, in any order."""
    slices = fetch_slices(transaction, run)
    held = lease_table.fetch_open_leases(transaction, run)
    return [
        *(piece for piece in slices if piece.state != SliceState.LEASED),
        *(piece for lease in held for piece in list_covered(lease)),
    ]


def measure_extent(transaction: Transaction, run: str) -> int:
    """The part of the request space of a run that is worth showing.

    Runs with a time limit never use most of their space; for all others it is the whole space.
    """
    return slice_table.fetch_extent(transaction, run, fetch_run(transaction, run).requests)
