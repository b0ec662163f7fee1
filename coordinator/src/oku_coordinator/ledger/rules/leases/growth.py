"""The growth of a lease between two checkpoints, which is folded into the account of its run.

A checkpoint must contain its predecessor: it may not take anything back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.run_account import PartName
from oku_core.accounting.counts import subtract_counts
from oku_core.accounting.index_ranges import is_contained
from oku_core.accounting.outcome import build_no_counts, count_sent, sum_counts
from oku_core.messaging.checkpoint import Checkpoint, LeaseFigures, Part

_GROWING = ("saturated", "lagged")
_NOTHING = Part()


class UntrueError(Exception):
    """A checkpoint cannot be true; the message is the reason."""


@dataclass(frozen=True)
class PartGrowth:
    """The growth of a part of a lease.

    Attributes:
        part: the new part, with all of its seconds.
        gained: the difference from the old one.
    """

    part: Part
    gained: Part


def grow_parts(stored: Mapping[PartName, Part], checkpoint: Checkpoint) -> list[PartGrowth]:
    """The growth of the parts of a lease by a checkpoint; parts that it omits have not grown.

    Args:
        stored: the parts after its predecessor.
        checkpoint: one without a fault of its own.

    Raises:
        UntrueError: a part does not contain its predecessor, or the parts do not sum to the covered positions
            that were sent.
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
    """The growth of the inner parts of a lease by a checkpoint.

    Args:
        stored: the inner parts after its predecessor.
        checkpoint: one without a fault of its own.

    Raises:
        UntrueError: a part does not contain its predecessor.
    """
    return [grow_part(stored.get((part.phase, part.name), _NOTHING), part) for part in checkpoint.inner]


def grow_part(before: Part, after: Part) -> PartGrowth:
    """The growth of a part.

    Raises:
        UntrueError: it does not contain its predecessor, or its seconds do not sum to its outcomes.
    """
    try:
        counts = after.subtract(before)
        seconds = _grow_seconds(before.per_second, after.per_second)
    except ValueError as error:
        raise UntrueError(str(error)) from error
    if counts.outcomes != sum_counts(seconds.values()):
        raise UntrueError("the seconds do not sum to the outcomes")
    if fault := _find_withdrawn(before, after):
        raise UntrueError(fault)
    gained = Part(
        phase=after.phase,
        name=after.name,
        per_second=seconds,
        sent_per_second=_grow_sent(before.sent_per_second, after.sent_per_second),
        failed={},  # the part as a whole has them
        **msgspec.structs.asdict(counts),
    )
    part = msgspec.structs.replace(
        after,
        per_second=before.per_second | after.per_second,
        sent_per_second=before.sent_per_second | after.sent_per_second,
    )
    return PartGrowth(part, gained)


def list_ended(gained: Part) -> dict[int, list[int]]:
    """The growth of a part's seconds in ended requests: a row of the series for each."""
    return {second: [*outcomes, 0] for second, outcomes in gained.per_second.items()}


def list_sent(gained: Part) -> dict[int, list[int]]:
    """The growth of a part's seconds in sent requests: a row of the series for each."""
    return {second: [*build_no_counts(), sent] for second, sent in gained.sent_per_second.items()}


def _grow_seconds(
    before: Mapping[int, Sequence[int]], after: Mapping[int, Sequence[int]]
) -> dict[int, list[int]]:
    """The growth of each second in outcomes; seconds without any are omitted."""
    grown = {
        second: subtract_counts(counts, before[second], "a second") if second in before else list(counts)
        for second, counts in after.items()
    }
    return {second: counts for second, counts in grown.items() if any(counts)}


def _find_withdrawn(before: Part, after: Part) -> str | None:
    """Find the failure of a position that was listed and no longer is; None if there is none."""
    for outcome, packed in before.failed.items():
        if not is_contained(packed, after.failed.get(outcome, [])):
            return f"a position is not {outcome} any more"
    kept = after.count_kept_reasons()
    if any(kept[key] < count for key, count in before.count_kept_reasons().items()):
        return "fewer positions have a reason than before"
    return None


def _grow_sent(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    grown = {second: sent - before.get(second, 0) for second, sent in after.items()}
    if min(grown.values(), default=0) < 0:
        raise UntrueError("fewer were sent in a second than before")
    return {second: sent for second, sent in grown.items() if sent}


def find_regress(lease: LeaseRecord, checkpoint: Checkpoint) -> str | None:
    """Find what a checkpoint takes back from its predecessor, or which bound it breaks.

    Args:
        lease: the lease after its predecessor.
        checkpoint: one without a fault of its own.
    """
    if checkpoint.done > lease.bound:
        return f"it is done to {checkpoint.done}, but may take up to {lease.bound} only"
    if checkpoint.done < lease.done:
        return f"it is done to {checkpoint.done}, but was to {lease.done}"
    if checkpoint.end > lease.reported_end:
        return f"its end was {lease.reported_end} and is {checkpoint.end}"
    if lease.done:
        settled = [position for position in checkpoint.in_flight if position < lease.done]
        if not set(settled) <= set(lease.in_flight):
            return "a position is in flight again that was covered before"
    if not set(lease.untouched) <= set(checkpoint.untouched):
        return "a position was untouched and no longer is"
    return _find_fallen_figure(lease.figures, checkpoint.figures)


def _find_fallen_figure(before: LeaseFigures, after: LeaseFigures) -> str | None:
    for name in _GROWING:
        was, now = getattr(before, name), getattr(after, name)
        if now < was:
            return f"{name} was {was} and is {now}"
    return None
