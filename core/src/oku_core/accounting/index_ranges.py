"""Ranges of the request space, and sets of positions in them.

A lease is a set of ranges. The position of an index is its rank in the set, so a lease of n indices has the
positions 0 to n - 1, wherever its indices are. Coordinator and worker exchange positions only: the failed
requests of a lease are a `RangeSet`, whose ranges merge as it grows. On the wire and in the ledger such a set
is a flat list of integers, packed: for each range how far it begins behind the end of the one before it, at
first behind 0, and how long it is.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter

Range = tuple[int, int]
"""The indices `start <= i < stop`."""


class IndexRanges:
    """Ranges in rising order that are disjoint and not empty; immutable.

    Raises:
        ValueError: a range is empty, begins below 0, or does not lie behind the one before it.
    """

    __slots__ = ("_offsets", "length", "ranges")

    def __init__(self, ranges: Iterable[Sequence[int]]) -> None:
        self.ranges: tuple[Range, ...] = tuple((start, stop) for start, stop in ranges)
        at = 0
        for start, stop in self.ranges:
            if not at <= start < stop:
                raise ValueError(f"the range [{start}, {stop}) is empty or does not follow on {at}")
            at = stop
        self._offsets = (0, *accumulate(stop - start for start, stop in self.ranges))
        self.length = self._offsets[-1]
        """How many indices there are."""

    def __eq__(self, other: object) -> bool:
        """Whether both have the same ranges."""
        return isinstance(other, IndexRanges) and self.ranges == other.ranges

    def __hash__(self) -> int:
        """The hash of the ranges."""
        return hash(self.ranges)

    def __repr__(self) -> str:
        """The ranges as text."""
        return f"IndexRanges({list(self.ranges)})"

    def index_at(self, position: int) -> int:
        """The index at a position, which must be from 0 to below `length`."""
        place = self.find_range(position)
        return self.ranges[place][0] + position - self._offsets[place]

    def position_of(self, index: int) -> int:
        """The position of an index, which must be in one of the ranges."""
        place = bisect_right(self.ranges, index, key=_get_start) - 1
        return self._offsets[place] + index - self.ranges[place][0]

    def find_range(self, position: int) -> int:
        """Which range, by its number from 0, has the index at a position below `length`."""
        return bisect_right(self._offsets, position) - 1

    def offset(self, number: int) -> int:
        """The position of the first index of a range, by the number of the range."""
        return self._offsets[number]

    def cut(self, first: int, last: int) -> list[Range]:
        """The ranges of the positions `first <= p < last`; none if `last` is not above `first`."""
        pieces: list[Range] = []
        if not 0 <= first < last <= self.length:
            return pieces
        for number in range(self.find_range(first), len(self.ranges)):
            offset, (start, stop) = self._offsets[number], self.ranges[number]
            if offset >= last:
                break
            pieces.append((start + max(0, first - offset), min(stop, start + last - offset)))
        return pieces

    def list_indices(self, positions: Iterable[int]) -> list[int]:
        """The index at each of several positions."""
        return [self.index_at(position) for position in positions]


def _get_start(piece: Range) -> int:
    return piece[0]


class Room:
    """How many ranges several sets may still have together."""

    __slots__ = ("left",)

    def __init__(self, ranges: int) -> None:
        self.left = ranges


class RangeSet:
    """A set that grows position by position; when full, it only extends existing ranges."""

    __slots__ = ("_room", "_starts", "_stops")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._starts: list[int] = []
        self._stops: list[int] = []

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._starts)

    def add(self, position: int) -> bool:
        """Add a position that is not in the set; whether there was room for it."""
        starts, stops = self._starts, self._stops
        if stops and stops[-1] == position:  # mostly, for requests mostly end in their order
            stops[-1] = position + 1
            return True
        place = bisect_right(starts, position)
        is_behind = place > 0 and stops[place - 1] == position
        is_before = place < len(starts) and starts[place] == position + 1
        if is_behind and is_before:
            stops[place - 1] = stops[place]
            del starts[place], stops[place]
            self._room.left += 1
        elif is_behind:
            stops[place - 1] += 1
        elif is_before:
            starts[place] -= 1
        elif self._room.left > 0:
            starts.insert(place, position)
            stops.insert(place, position + 1)
            self._room.left -= 1
        else:
            return False
        return True

    def append(self, start: int, stop: int) -> bool:
        """Add the positions `start <= p < stop`, which follow all that are there; whether there was room."""
        if self._stops and self._stops[-1] == start:
            self._stops[-1] = stop
        elif self._room.left > 0:
            self._starts.append(start)
            self._stops.append(stop)
            self._room.left -= 1
        else:
            return False
        return True

    def equals(self, other: "RangeSet") -> bool:
        """Whether both have the same positions."""
        return self._starts == other._starts and self._stops == other._stops  # noqa: SLF001  # of the same class

    @property
    def count(self) -> int:
        """How many positions there are."""
        return sum(self._stops) - sum(self._starts)

    @property
    def ranges(self) -> Iterator[Range]:
        """The ranges, in rising order."""
        return zip(self._starts, self._stops, strict=True)

    def pack(self) -> list[int]:
        """The set as it is sent."""
        return pack_ranges(self.ranges)


def pack_ranges(ranges: Iterable[Range]) -> list[int]:
    """Ranges in rising order as a flat list of gaps and lengths."""
    packed: list[int] = []
    at = 0
    for start, stop in ranges:
        packed += (start - at, stop - start)
        at = stop
    return packed


def iter_ranges(packed: Sequence[int]) -> Iterator[Range]:
    """The ranges of a packed set, in rising order."""
    at = 0
    for place in range(0, len(packed), 2):
        start = at + packed[place]
        at = start + packed[place + 1]
        yield start, at


def count_packed(packed: Sequence[int]) -> int:
    """How many positions are in a packed set."""
    return sum(packed[1::2])


def is_packed(packed: Sequence[int]) -> bool:
    """Whether this is a packed set: ranges that are not empty and have gaps between them."""
    if len(packed) % 2:
        return False
    return not packed or (packed[0] >= 0 and min(packed[1:]) > 0)


def merge_ranges(ranges: Iterable[Range]) -> Iterator[Range]:
    """Ranges by rising starts, with those joined that overlap or touch."""
    pending: Range | None = None
    for start, stop in ranges:
        if pending is not None and start <= pending[1]:
            pending = (pending[0], max(pending[1], stop))
            continue
        if pending is not None:
            yield pending
        pending = (start, stop)
    if pending is not None:
        yield pending


def is_in_ranges(position: int, ranges: Sequence[Range]) -> bool:
    """Whether a position is in ranges in rising order."""
    place = bisect_right(ranges, position, key=itemgetter(0)) - 1
    return place >= 0 and position < ranges[place][1]


def is_contained(inner: Sequence[int], outer: Sequence[int]) -> bool:
    """Whether all positions of a packed set are in another one."""
    if inner == outer:
        return True
    others = iter_ranges(outer)
    at = (0, 0)
    for start, stop in iter_ranges(inner):
        while at[1] < stop:
            following = next(others, None)
            if following is None:
                return False
            at = following
        if start < at[0]:
            return False
    return True
