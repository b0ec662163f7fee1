"""Sets of ranges of the request space, and the positions of indices in them.

A lease is a set of ranges. The position of an index is its rank in the set, so a lease of n indices has the
positions 0 to n - 1, wherever its indices are. All that coordinator and worker say about a lease is in
positions.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

Range = tuple[int, int]
"""The indices `start <= i < stop`."""


class IndexRanges:
    """Ranges in rising order that are disjoint and not empty; immutable.

    Args:
        ranges: the ranges.

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
