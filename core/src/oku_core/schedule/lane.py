"""A lane of a wave: which indices its coordinates have, and when they are due.

The position of a coordinate is its rank in its lane. Positions, coordinates and due times rise together. Of
random arrivals a lane has the same indices as of even ones; block by block it has them in the order of their
times.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from oku_core.schedule.arrivals import Arrivals
from oku_core.schedule.block import Block
from oku_core.schedule.poisson import ARRIVALS_STREAM
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave
from oku_core.uniform import list_uniform

MOST_IN_CHUNK = 256
"""How many due times are computed at a time: fewer than an event loop notices."""
_MEAN_IN_CLASS = 128


Range = tuple[int, int]
"""The coordinates, or the positions, `start <= c < stop`."""

_NS = 10**9


class Chunk(NamedTuple):
    """Some arrivals of a lane, in the order of their coordinates.

    Attributes:
        indices: their indices.
        dues_ns: when they are due, in nanoseconds of the schedule's clock; never falling.
    """

    indices: Sequence[int]
    dues_ns: Sequence[int]


class _Part(NamedTuple):
    """The positions `start <= p < stop` of a lane, which are in one block."""

    block: Block
    start: int
    stop: int


class Lane:
    """The arrivals of a lane.

    Args:
        schedule: the schedule.
        wave: a wave of it.
        number: which lane, from 0.

    Raises:
        ValueError: the wave has no such lane, or does not lie in the schedule.
    """

    def __init__(self, schedule: Schedule, wave: Wave, number: int) -> None:
        if not 0 <= number < wave.lanes:
            raise ValueError(f"a wave of {wave.lanes} lanes has no lane {number}")
        if wave.next_block > schedule.blocks or wave.stop > schedule.requests:
            raise ValueError(f"the wave of the blocks {wave.block} to {wave.next_block} is behind the end")
        self._schedule = schedule
        self._wave = wave
        self._number = number
        self.start, self.stop = wave.lane_range(number)
        """The coordinates of the lane: `start <= c < stop`."""

    def iter_chunks(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        """The arrivals in ranges of coordinates, which must be in rising order and in the lane.

        Each chunk takes a fraction of a millisecond. Before the first random arrivals of a second come, as
        many chunks are empty as it takes to draw all that the lane has in that second.
        """
        wanted = [(start - self.start, stop - self.start) for start, stop in ranges]
        is_even = self._schedule.arrivals is Arrivals.EVEN
        before = 0
        for number, until in enumerate(self._wave.blocks, self._wave.block):
            first, last = self._count_in_lane(before), self._count_in_lane(until)
            if _clip(wanted, first, last):
                part = _Part(Block(self._schedule, number, self._wave.begin + before), first, last)
                yield from self._iter_even(part, wanted) if is_even else self._iter_random(part, wanted)
            before = until

    def iter_dues(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The index and the due time, in nanoseconds, of each of the coordinates `start <= c < stop`."""
        chunks = self.iter_chunks([(start, stop)])
        return chain.from_iterable(zip(chunk.indices, chunk.dues_ns, strict=True) for chunk in chunks)

    def find_first_due(self, time_ns: int) -> int:
        """The first coordinate of the lane that is due at a time or after it; `stop` if there is none.

        Random arrivals of the second in question must all be drawn: a microsecond for each that the lane has
        in it, unless it begins at this time.
        """
        wave = self._wave
        segment = self._schedule.find_segment_of_block(wave.block)
        number = segment.first_block + math.floor(Fraction(time_ns, _NS) - segment.begin_s) - wave.block
        if number < 0:
            return self.start
        if number >= len(wave.blocks):
            return self.stop
        before = wave.blocks[number - 1] if number else 0
        first, last = self._count_in_lane(before), self._count_in_lane(wave.blocks[number])
        block = Block(self._schedule, wave.block + number, wave.begin + before)
        if block.begin_ns == time_ns:
            return self.start + first
        if self._schedule.arrivals is Arrivals.EVEN:
            rank = bisect_left(self._list_indices(first, last), time_ns, key=block.find_even)
            return self.start + first + rank
        for _, dues_ns in self._iter_random(_Part(block, first, last), [(first, last)]):
            first += bisect_left(dues_ns, time_ns)
        return self.start + first

    def _iter_even(self, part: _Part, wanted: Sequence[Range]) -> Iterator[Chunk]:
        for start, stop in _clip(wanted, part.start, part.stop):
            for at in range(start, stop, MOST_IN_CHUNK):
                indices = self._list_indices(at, min(stop, at + MOST_IN_CHUNK))
                yield Chunk(indices, part.block.list_even(indices))

    def _iter_random(self, part: _Part, wanted: Sequence[Range]) -> Iterator[Chunk]:
        """The arrivals, sorted class by class of their random numbers; first all of them have to be drawn."""
        indices = self._list_indices(part.start, part.stop)
        # No pairs before they are sorted: of so many that wait the garbage collector would look at each.
        classes: list[tuple[list[float], list[int]]] = [
            ([], []) for _ in range(0, len(indices), _MEAN_IN_CLASS)
        ]
        seed = self._schedule.seed ^ ARRIVALS_STREAM
        for at in range(0, len(indices), MOST_IN_CHUNK):
            some = indices[at : at + MOST_IN_CHUNK]
            for chance, index in zip(list_uniform(seed, some), some, strict=True):
                chances, members = classes[int(chance * len(classes))]
                chances.append(chance)
                members.append(index)
            yield Chunk((), ())
        at = part.start
        for number, (chances, members) in enumerate(classes):
            classes[number] = [], []  # to free them all at the end would take a millisecond
            pairs = sorted(zip(chances, members, strict=True))
            ranges = _clip(wanted, at, at + len(pairs))
            chosen = [each for start, stop in ranges for each in pairs[start - at : stop - at]]
            dues_ns = part.block.list_random(chance for chance, _ in chosen)
            yield Chunk([index for _, index in chosen], dues_ns)
            at += len(pairs)

    def _count_in_lane(self, rank: int) -> int:
        return self._wave.count_in_lane(self._number, rank)

    def _list_indices(self, first: int, last: int) -> range:
        """The indices at some positions; of random arrivals, of whole blocks only."""
        begin, lanes = self._wave.begin + self._number, self._wave.lanes
        return range(begin + first * lanes, begin + last * lanes, lanes)


def _clip(ranges: Sequence[Range], first: int, last: int) -> list[Range]:
    """What of ranges in rising order lies in `first <= p < last`."""
    clipped: list[Range] = []
    for number in range(bisect_right(ranges, first, key=itemgetter(1)), len(ranges)):
        start, stop = ranges[number]
        if start >= last:
            break
        clipped.append((max(start, first), min(stop, last)))
    return clipped
