"""Slices of the request space: half-open intervals `[start, stop)` with a state, and the first law over them.

The ledger keeps a run's space as a partition into slices. The rules by which slices change are pure functions
here; the ledger only stores their results.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from oku_core.accounting.index_ranges import IndexRanges, Range


class SliceState(StrEnum):
    """The state of a part of the request space."""

    PENDING = "pending"
    """No lease covers it, and it has no outcome."""
    LEASED = "leased"
    """One open lease has it; outcomes so far are in the row of the lease."""
    ACCOUNTED = "accounted"
    """Its outcomes are in the ledger."""
    UNUSED = "unused"
    """It was pending when the time of its run had passed, and will not be sent any more."""


class Slice(NamedTuple):
    """The indices `start <= i < stop`, all in one state."""

    start: int
    stop: int
    state: SliceState

    @property
    def length(self) -> int:
        """The number of indices in the slice."""
        return self.stop - self.start


class Lengths(NamedTuple):
    """The number of indices in each state."""

    pending: int
    leased: int
    accounted: int
    unused: int = 0


class ConservationError(Exception):
    """The account of a run does not balance: the first law is broken."""


def build_partition(slices: Iterable[Slice]) -> list[Slice]:
    """Slices in rising order, with neighbours of one state joined and empty ones left out.

    Leased slices stay apart, one for each range of a lease. Gaps and overlaps are for `check_partition` to
    find.

    Raises:
        ConservationError: a slice ends before it starts.
    """
    joined: list[Slice] = []
    for piece in slices:
        if piece.length < 0:
            raise ConservationError(
                f"slice [{piece.start}, {piece.stop}) {piece.state} ends before it starts"
            )
        if piece.length == 0:
            continue
        last = joined[-1] if joined else None
        if last and last.state == piece.state != SliceState.LEASED and last.stop == piece.start:
            joined[-1] = Slice(last.start, piece.stop, piece.state)
        else:
            joined.append(piece)
    return joined


def settle(
    ranges: IndexRanges, end: int, done: int, in_flight: Iterable[int]
) -> Iterator[tuple[Range, list[Slice]]]:
    """Yield the new states of the leased slices of a lease that is over, in rising order.

    The positions `[0, done)` are accounted except for those that were still in flight; these, and
    `[done, end)`, are pending again.

    Args:
        ranges: the ranges of the lease.
        end: the first position that is not leased any more, `done <= end <= ranges.length`.
        done: the first position that was never taken.
        in_flight: rising positions below `done`.
    """
    holes = iter([*ranges.list_indices(in_flight), -1])
    hole = next(holes)
    for number, (start, stop) in enumerate(ranges.cut(0, end)):
        taken = min(stop, start + max(0, done - ranges.offset(number)))
        pieces: list[Slice] = []
        at = start
        while start <= hole < stop:
            pieces.append(Slice(at, hole, SliceState.ACCOUNTED))
            pieces.append(Slice(hole, hole + 1, SliceState.PENDING))
            at = hole + 1
            hole = next(holes)
        pieces += [Slice(at, taken, SliceState.ACCOUNTED), Slice(taken, stop, SliceState.PENDING)]
        yield (start, stop), build_partition(pieces)


def release(ranges: IndexRanges, end: int, to: int) -> Iterator[tuple[Range, list[Slice]]]:
    """Yield the new states of the leased slices of a lease when its end falls from `end` to `to`.

    Slices that stay as they are, are left out.
    """
    if to >= end:
        return
    for number, (start, stop) in enumerate(ranges.cut(to, end), ranges.find_range(to)):
        begin = ranges.ranges[number][0]
        pieces = [Slice(begin, start, SliceState.LEASED), Slice(start, stop, SliceState.PENDING)]
        yield (begin, stop), build_partition(pieces)


def check_replacement(removed: Iterable[Slice], added: Iterable[Slice]) -> None:
    """Check the first law over a change: the added slices cover exactly what the removed ones covered.

    If the slices were a partition before the change, they are one after it, so a change can be checked
    without looking at the rest of the space.

    Raises:
        ConservationError: indices were lost or came twice, or a slice is empty.
    """
    gone, come = _build_cover(removed), _build_cover(added)
    if gone != come:
        raise ConservationError(f"slices that covered {gone} became slices that cover {come}")


def _build_cover(slices: Iterable[Slice]) -> list[tuple[int, int]]:
    """The ranges that slices of any state cover together, in rising order and joined."""
    cover: list[tuple[int, int]] = []
    for start, stop, state in sorted(slices):
        if stop <= start or (cover and start < cover[-1][1]):
            raise ConservationError(f"slice [{start}, {stop}) {state} does not follow on the one before")
        if cover and start == cover[-1][1]:
            cover[-1] = (cover[-1][0], stop)
        else:
            cover.append((start, stop))
    return cover


def check_partition(slices: Iterable[Slice], requests: int) -> Lengths:
    """Check the first law: the slices, in rising order, are disjoint and together cover `[0, requests)`.

    Returns:
        The lengths by state; they sum to `requests`.

    Raises:
        ConservationError: there is a gap, an overlap, an empty slice, or an index outside the space.
    """
    lengths = dict.fromkeys(SliceState, 0)
    at = 0
    for start, stop, state in slices:
        if start != at or stop <= start:
            raise ConservationError(f"slice [{start}, {stop}) {state} does not follow on {at}")
        lengths[state] += stop - start
        at = stop
    if at != requests:
        raise ConservationError(f"the slices end at {at}, the request space at {requests}")
    return Lengths(
        pending=lengths[SliceState.PENDING],
        leased=lengths[SliceState.LEASED],
        accounted=lengths[SliceState.ACCOUNTED],
        unused=lengths[SliceState.UNUSED],
    )
