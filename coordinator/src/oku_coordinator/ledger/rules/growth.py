"""What a lease has gained between two checkpoints: the difference that is folded into the account of its run.

A checkpoint must contain its predecessor: nothing that was said before may be taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.run_account import PartName, sum_counts
from oku_core.accounting.failure_reason import ReasonCount
from oku_core.accounting.histogram import HistogramSnapshot, subtract
from oku_core.accounting.outcome import build_no_counts, count_sent
from oku_core.accounting.range_set import is_contained
from oku_core.accounting.request_timing import TIMINGS
from oku_core.messaging.checkpoint import Checkpoint, Part
from oku_core.results.lease_figures import LeaseFigures

_GROWING = ("saturated", "lagged")
_HISTOGRAMS = ("latency", "response_time", "lateness", *TIMINGS)
_NOTHING = Part()


class UntrueError(Exception):
    """A checkpoint cannot be true, for a reason that is its text."""


@dataclass(frozen=True)
class PartGrowth:
    """What a part of a lease has gained.

    Attributes:
        part: the part as it is now, with all of its seconds.
        gained: the difference to what it was.
    """

    part: Part
    gained: Part


def grow_parts(stored: Mapping[PartName, Part], checkpoint: Checkpoint) -> list[PartGrowth]:
    """What the parts of a lease have gained by a checkpoint; those that it leaves out have gained nothing.

    Args:
        stored: the parts as its predecessor left them.
        checkpoint: one without a fault of its own.

    Raises:
        UntrueError: a part does not contain what it was, or the parts do not sum to what is covered and
            was sent.
    """
    growths = [grow_part(stored.get((part.phase, part.name), _NOTHING), part) for part in checkpoint.parts]
    named = {(part.phase, part.name) for part in checkpoint.parts}
    parts = [part for name, part in stored.items() if name not in named]
    parts += [growth.part for growth in growths]
    total = sum(sum(part.outcomes) for part in parts)
    if total != checkpoint.covered:
        raise UntrueError(f"the outcomes sum to {total}, but {checkpoint.covered} are covered")
    sent = sum(sum(part.sent_per_second.values()) for part in parts)
    most = sum(count_sent(part.outcomes) for part in parts) + len(checkpoint.in_flight)
    if sent > most:
        raise UntrueError(f"{sent} were sent, but no more than {most} have ended or are in flight")
    return growths


def grow_inner(stored: Mapping[PartName, Part], checkpoint: Checkpoint) -> list[PartGrowth]:
    """What the inner parts of a lease have gained by a checkpoint.

    Args:
        stored: the inner parts as its predecessor left them.
        checkpoint: one without a fault of its own.

    Raises:
        UntrueError: a part does not contain what it was.
    """
    return [grow_part(stored.get((part.phase, part.name), _NOTHING), part) for part in checkpoint.inner]


def grow_part(before: Part, after: Part) -> PartGrowth:
    """What a part has gained.

    Raises:
        UntrueError: it does not contain what it was, or its seconds do not sum to its outcomes.
    """
    if after.bytes_received < before.bytes_received:
        raise UntrueError("fewer bytes were received than before")
    seconds = {
        second: grown
        for second, counts in after.per_second.items()
        if any(grown := _grow_counts(before.per_second.get(second), counts, "a second"))
    }
    outcomes = _grow_counts(before.outcomes, after.outcomes, "the outcomes")
    if outcomes != sum_counts(seconds.values()):
        raise UntrueError("the seconds do not sum to the outcomes")
    if fault := _find_healed(before, after):
        raise UntrueError(fault)
    gained = Part(
        phase=after.phase,
        name=after.name,
        outcomes=outcomes,
        not_sent=_grow_counts(before.not_sent, after.not_sent, "the causes for not sending"),
        statuses=_grow_statuses(before.statuses, after.statuses),
        bytes_received=after.bytes_received - before.bytes_received,
        per_second=seconds,
        sent_per_second=_grow_sent(before.sent_per_second, after.sent_per_second),
        reasons=_grow_reasons(before.reasons, after.reasons),
        failed={},  # the part as a whole has them
        **{name: _grow_histogram(before, after, name) for name in _HISTOGRAMS},
    )
    part = msgspec.structs.replace(
        after,
        per_second=before.per_second | after.per_second,
        sent_per_second=before.sent_per_second | after.sent_per_second,
    )
    return PartGrowth(part, gained)


def list_ended(gained: Part) -> dict[int, list[int]]:
    """What the seconds of a part have gained of requests that ended: a row of the series for each."""
    return {second: [*outcomes, 0] for second, outcomes in gained.per_second.items()}


def list_sent(gained: Part) -> dict[int, list[int]]:
    """What the seconds of a part have gained of requests that were sent: a row of the series for each."""
    return {second: [*build_no_counts(), sent] for second, sent in gained.sent_per_second.items()}


def _grow_histogram(before: Part, after: Part, name: str) -> HistogramSnapshot:
    earlier, later = getattr(before, name), getattr(after, name)
    if not later.buckets and not earlier.buckets:  # most of them
        return HistogramSnapshot()
    try:
        return subtract(later, earlier)
    except ValueError as error:
        raise UntrueError(f"{name} does not contain what it did: {error}") from error


def _grow_reasons(before: Sequence[ReasonCount], after: Sequence[ReasonCount]) -> list[ReasonCount]:
    """What each reason has gained, with its first and last position of all."""
    if not after and not before:
        return []
    counted = {count.key: count for count in before}
    grown: list[ReasonCount] = []
    for count in after:
        was = counted.pop(count.key, None)
        if was is None:
            grown.append(count)
        elif count.requests < was.requests or count.first > was.first or count.last < was.last:
            raise UntrueError(f"the reason {count.reason!r} had {was.requests} and has {count.requests}")
        elif count.requests > was.requests:
            grown.append(msgspec.structs.replace(count, requests=count.requests - was.requests))
    if counted:
        raise UntrueError("a reason has gone")
    return grown


def _find_healed(before: Part, after: Part) -> str | None:
    """Say as what a position had failed that has not any more; None if each still has."""
    for outcome, packed in before.failed.items():
        if not is_contained(packed, after.failed.get(outcome, [])):
            return f"a position is not {outcome} any more"
    return None


def _grow_sent(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    grown = {second: sent - before.get(second, 0) for second, sent in after.items()}
    if min(grown.values(), default=0) < 0:
        raise UntrueError("fewer were sent in a second than before")
    return {second: sent for second, sent in grown.items() if sent}


def _grow_statuses(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    if not before.keys() <= after.keys():
        raise UntrueError("a status has gone")
    grown = {status: count - before.get(status, 0) for status, count in after.items()}
    if min(grown.values(), default=0) < 0:
        raise UntrueError("a status has been counted less often than before")
    return {status: count for status, count in grown.items() if count}


def _grow_counts(before: Sequence[int] | None, after: Sequence[int], what: str) -> list[int]:
    if before is None:
        return list(after)
    grown = [new - old for old, new in zip(before, after, strict=True)]
    if min(grown) < 0:
        raise UntrueError(f"{what} counted {list(before)} before and {list(after)} now")
    return grown


def find_regress(lease: LeaseRecord, checkpoint: Checkpoint) -> str | None:
    """Say what a checkpoint takes back of what its predecessor said, or which bound it breaks.

    Args:
        lease: the lease as its predecessor left it.
        checkpoint: one without a fault of its own.
    """
    if checkpoint.done > lease.bound:
        return f"it is done to {checkpoint.done}, but may take up to {lease.bound} only"
    if checkpoint.done < lease.done:
        return f"it is done to {checkpoint.done}, but was to {lease.done}"
    if lease.sequence and checkpoint.end > lease.figures.end:
        return f"its end was {lease.figures.end} and is {checkpoint.end}"
    if lease.done:
        settled = [position for position in checkpoint.in_flight if position < lease.done]
        if not set(settled) <= set(lease.in_flight):
            return "a position is in flight again that was covered before"
    if not set(lease.figures.untouched) <= set(checkpoint.untouched):
        return "a position was untouched and is not any more"
    return _find_fallen_figure(lease.figures, checkpoint)


def _find_fallen_figure(before: LeaseFigures, checkpoint: Checkpoint) -> str | None:
    for name in _GROWING:
        was, now = getattr(before, name), getattr(checkpoint, name)
        if now < was:
            return f"{name} was {was} and is {now}"
    return None
