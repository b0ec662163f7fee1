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

from oku_core.schedule.block import Block, RandomBlock
from oku_core.schedule.poisson import ARRIVALS_STREAM
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals
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


class _Cell(NamedTuple):
    """The positions `start <= p < stop` of a lane, which are in one cell of a block of random arrivals."""

    block: RandomBlock
    number: int
    start: int
    stop: int


class Lane:
    """The arrivals of a lane.

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
        self._known: tuple[int, Block] | None = None
        """The block that was asked for last, by its number in the wave."""
        self.start, self.stop = wave.lane_range(number)
        """The coordinates of the lane: `start <= c < stop`."""
        self.indices = self._list_indices(0, self.stop - self.start)
        """Its indices in rising order, as its coordinates have them if arrivals are even."""

    @property
    def duration_s(self) -> float:
        """How many seconds its wave lasts."""
        schedule, wave = self._schedule, self._wave
        return float(schedule.block_begin_s(wave.next_block) - schedule.block_begin_s(wave.block))

    @property
    def is_random(self) -> bool:
        """Whether its arrivals are random."""
        return self._schedule.arrivals is Arrivals.POISSON

    def iter_chunks(self, ranges: Sequence[Range]) -> Iterator[Chunk]:
        """The arrivals in ranges of coordinates, which must be in rising order and in the lane.

        Each chunk takes a fraction of a millisecond. Before the first random arrivals of a cell come, as many
        chunks are empty as it takes to draw all that the lane has in that cell.
        """
        for block, pieces in self._iter_blocks(ranges):
            if isinstance(block, RandomBlock):
                for cell in self._iter_cells(block, pieces):
                    yield from self._iter_random(cell, clip_ranges(pieces, cell.start, cell.stop))
            else:
                yield from self._iter_even(block, pieces)

    def iter_indices(self, ranges: Sequence[Range]) -> Iterator[Sequence[int]]:
        """The indices of ranges of coordinates, a sequence at a time, in the order of the coordinates.

        A sequence of random arrivals is of one cell, or of whole cells in a row. Whole cells are not drawn;
        their indices are in rising order.
        """
        if not self.is_random:
            for start, stop in ranges:
                yield self._list_indices(start - self.start, stop - self.start)
            return
        for block, pieces in self._iter_blocks(ranges):
            assert isinstance(block, RandomBlock)
            reached = 0
            for start, stop in pieces:
                reached = max(start, reached)
                while reached < stop:
                    cell = self._find_cell(block, reached)
                    wanted = clip_ranges(pieces, cell.start, cell.stop)
                    if wanted == [(cell.start, cell.stop)]:
                        last = self._find_cell(block, stop - 1)
                        reached = stop if last.stop == stop else last.start
                        yield self._list_indices(cell.start, reached)
                    else:
                        reached = cell.stop
                        yield [index for chunk in self._iter_random(cell, wanted) for index in chunk.indices]

    def iter_dues(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The index and the due time, in nanoseconds, of each of the coordinates `start <= c < stop`."""
        chunks = self.iter_chunks([(start, stop)])
        return chain.from_iterable(zip(chunk.indices, chunk.dues_ns, strict=True) for chunk in chunks)

    def find_first_due(self, time_ns: int) -> int:
        """The first coordinate of the lane that is due at a time or after it; `stop` if there is none.

        Random arrivals of the cell in question must all be drawn: a microsecond for each that the lane has in
        it, unless the block begins at this time.
        """
        found = self._find_block_at(time_ns)
        if not isinstance(found, Block):
            return found
        first, last = self._find_span(found)
        if found.begin_ns == time_ns:
            return self.start + first
        if not isinstance(found, RandomBlock):
            rank = bisect_left(self._list_indices(first, last), time_ns, key=found.find_even)
            return self.start + first + rank
        cell = self._build_cell(found, max(0, found.find_cell_at(time_ns) - 1))
        at = cell.start
        for _, dues_ns in self._iter_random(cell, [(cell.start, cell.stop)]):
            at += bisect_left(dues_ns, time_ns)
        return self.start + at

    def find_cell_start(self, time_ns: int) -> int:
        """The first coordinate of the cell of random arrivals that a time lies in; none has to be drawn."""
        found = self._find_block_at(time_ns)
        if not isinstance(found, RandomBlock):
            return found if isinstance(found, int) else self.find_first_due(time_ns)
        return self.start + self._build_cell(found, max(0, found.find_cell_at(time_ns) - 1)).start

    def _find_block_at(self, time_ns: int) -> Block | int:
        """The block of the wave that a time lies in; outside the wave, the first coordinate after it."""
        wave = self._wave
        segment = self._schedule.find_segment_of_block(wave.block)
        number = segment.first_block + math.floor(Fraction(time_ns, _NS) - segment.begin_s) - wave.block
        if number < 0:
            return self.start
        return self._find_block(number) if number < len(wave.blocks) else self.stop

    def _find_block(self, number: int) -> Block:
        """A block of the wave, by its number in the wave."""
        if self._known is None or self._known[0] != number:
            wave = self._wave
            before = wave.blocks[number - 1] if number else 0
            place, first = wave.block + number, wave.begin + before
            if not self.is_random:
                self._known = number, Block(self._schedule, place, first)
            else:
                count = wave.blocks[number] - before
                self._known = number, RandomBlock(self._schedule, place, first, count)
        return self._known[1]

    def _find_span(self, block: Block) -> Range:
        """The positions of the lane that are in a block."""
        wave = self._wave
        before = block.first - wave.begin
        return self._count_in_lane(before), self._count_in_lane(wave.blocks[block.number - wave.block])

    def _iter_blocks(self, ranges: Sequence[Range]) -> Iterator[tuple[Block, list[Range]]]:
        """The blocks that ranges of coordinates lie in, with the positions in each."""
        wanted = [(start - self.start, stop - self.start) for start, stop in ranges]
        before = 0
        for number, until in enumerate(self._wave.blocks):
            if pieces := clip_ranges(wanted, self._count_in_lane(before), self._count_in_lane(until)):
                yield self._find_block(number), pieces
            before = until

    def _iter_cells(self, block: RandomBlock, pieces: Sequence[Range]) -> Iterator[_Cell]:
        """The cells that some positions of a block lie in."""
        reached = 0
        for start, stop in pieces:
            reached = max(start, reached)
            while reached < stop:
                yield (cell := self._find_cell(block, reached))
                reached = cell.stop

    def _find_cell(self, block: RandomBlock, position: int) -> _Cell:
        """The cell that a position lies in."""
        rank = self._number + position * self._wave.lanes - (block.first - self._wave.begin)
        return self._build_cell(block, block.find_cell(rank))

    def _build_cell(self, block: RandomBlock, number: int) -> _Cell:
        before = block.first - self._wave.begin
        start = self._count_in_lane(before + block.count_before(number))
        return _Cell(block, number, start, self._count_in_lane(before + block.count_before(number + 1)))

    def _iter_even(self, block: Block, pieces: Sequence[Range]) -> Iterator[Chunk]:
        for start, stop in pieces:
            for at in range(start, stop, MOST_IN_CHUNK):
                indices = self._list_indices(at, min(stop, at + MOST_IN_CHUNK))
                yield Chunk(indices, block.list_even(indices))

    def _iter_random(self, cell: _Cell, wanted: Sequence[Range]) -> Iterator[Chunk]:
        """The arrivals, sorted class by class of their random numbers; first all of them have to be drawn."""
        indices = self._list_indices(cell.start, cell.stop)
        # No pairs before they are sorted: the garbage collector would visit each of very many.
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
        at, block = cell.start, cell.block
        for number, (chances, members) in enumerate(classes):
            classes[number] = [], []  # to free them all at the end would take a millisecond
            pairs = sorted(zip(chances, members, strict=True))
            ranges = clip_ranges(wanted, at, at + len(pairs))
            chosen = [each for start, stop in ranges for each in pairs[start - at : stop - at]]
            dues_ns = block.list_random((chance for chance, _ in chosen), cell.number, block.cells)
            yield Chunk([index for _, index in chosen], dues_ns)
            at += len(pairs)

    def _count_in_lane(self, rank: int) -> int:
        return self._wave.count_in_lane(self._number, rank)

    def _list_indices(self, first: int, last: int) -> range:
        """The indices at some positions; of random arrivals, of whole cells only."""
        begin, lanes = self._wave.begin + self._number, self._wave.lanes
        return range(begin + first * lanes, begin + last * lanes, lanes)


def clip_ranges(ranges: Sequence[Range], first: int, last: int) -> list[Range]:
    """The parts of ranges in rising order that lie in `first <= p < last`."""
    clipped: list[Range] = []
    for number in range(bisect_right(ranges, first, key=itemgetter(1)), len(ranges)):
        start, stop = ranges[number]
        if start >= last:
            break
        clipped.append((max(start, first), min(stop, last)))
    return clipped
