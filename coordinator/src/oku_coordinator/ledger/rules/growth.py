"""What a lease has gained between two checkpoints: the difference that is folded into the account of its run.

A checkpoint must contain its predecessor: nothing that was said before may be taken back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from oku_coordinator.ledger.storage.records import LeaseRecord, PartName
from oku_core.accounting.histogram import HistogramSnapshot, subtract
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import Checkpoint, Part
from oku_core.results.lease_figures import LeaseFigures

_GROWING = ("saturated", "lagged")
_NOTHING = Part()


class UntrueError(Exception):
    """A checkpoint cannot be true, for a reason that is its text."""


@dataclass(frozen=True)
class PartGrowth:
    """What a part of a lease has gained.

    Attributes:
        part: the part as it is now, with all of its seconds.
        outcomes: what the counts of outcomes have gained.
        statuses: what the counts of responses by status code have gained.
        bytes_received: how many bytes were received.
        latency: the latencies that were recorded.
        seconds: what the counts of outcomes have gained, by second.
    """

    part: Part
    outcomes: list[int]
    statuses: dict[str, int]
    bytes_received: int
    latency: HistogramSnapshot
    seconds: dict[int, list[int]]


def grow_parts(stored: Mapping[PartName, Part], checkpoint: Checkpoint) -> list[PartGrowth]:
    """What the parts of a lease have gained by a checkpoint; those that it leaves out have gained nothing.

    Args:
        stored: the parts as its predecessor left them.
        checkpoint: one without a fault of its own.

    Raises:
        UntrueError: a part does not contain what it was, or the parts do not sum to what is covered.
    """
    growths = [grow_part(stored.get((part.phase, part.name), _NOTHING), part) for part in checkpoint.parts]
    named = {(part.phase, part.name) for part in checkpoint.parts}
    left_out = sum(sum(part.outcomes) for name, part in stored.items() if name not in named)
    total = left_out + sum(sum(growth.part.outcomes) for growth in growths)
    if total != checkpoint.covered:
        raise UntrueError(f"the outcomes sum to {total}, but {checkpoint.covered} are covered")
    return growths


def grow_part(before: Part, after: Part) -> PartGrowth:
    """What a part has gained.

    Raises:
        UntrueError: it does not contain what it was, or its seconds do not sum to its outcomes.
    """
    try:
        latency = subtract(after.latency, before.latency)
    except ValueError as error:
        raise UntrueError(f"the latencies do not contain what they were: {error}") from error
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
    return PartGrowth(
        part=msgspec.structs.replace(after, per_second=before.per_second | after.per_second),
        outcomes=outcomes,
        statuses=_grow_statuses(before.statuses, after.statuses),
        bytes_received=after.bytes_received - before.bytes_received,
        latency=latency,
        seconds=seconds,
    )


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


def sum_counts(counts: Iterable[Sequence[int]]) -> list[int]:
    """The sum of several counts of outcomes."""
    return [sum(column) for column in zip(build_no_counts(), *counts, strict=True)]


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
    return _find_fallen_figure(lease.figures, checkpoint)


def _find_fallen_figure(before: LeaseFigures, checkpoint: Checkpoint) -> str | None:
    for name in _GROWING:
        was, now = getattr(before, name), getattr(checkpoint, name)
        if now < was:
            return f"{name} was {was} and is {now}"
    return None
