"""Sets of positions as ranges that merge: which requests of a lease have failed, in few bytes.

On the wire and in the ledger a set is a flat list of integers, packed: for each range how far it begins
behind the end of the one before it, at first behind 0, and how long it is.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from oku_core.accounting.index_ranges import Range


class Room:
    """How many ranges several sets may still have together.

    Args:
        ranges: how many.
    """

    __slots__ = ("left",)

    def __init__(self, ranges: int) -> None:
        self.left = ranges


class RangeSet:
    """A set that grows position by position.

    Args:
        room: for its ranges; without any left it takes only what makes one of them longer.
    """

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

    def pack(self) -> list[int]:
        """The set as it is sent."""
        return pack_ranges(zip(self._starts, self._stops, strict=True))


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
