"""The due times in one block of a schedule, in nanoseconds of the schedule's clock.

They are counted from the start of the block, so they are precise however long the schedule is, and each lies
inside its block. They depend on the schedule and the index alone: not on the lane, nor on the wave.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from math import sqrt

from oku_core.schedule.poisson import BlockCounts
from oku_core.schedule.schedule import Schedule
from oku_core.uniform import draw_bits

MOST_DRAWN = 10_000
"""How many random arrivals are drawn together; that takes 4 ms."""
_NS = 10**9
_CELLS_STREAM = 0x6F6B752D63656C6C
"""Changes the seed (the letters `oku-cell`)."""
_LEAST_AREA = Fraction(1, 10**30)
"""In place of no area, for which the formula would be 0 / 0 at a rate of 0."""

_LEAST_CHANCE = 2.0**-64


class Block:
    """A block: at most one second of one stage.

    The arrival at an area x under the rate, from the start of the block, is due `2x / (r + √(r² + 2ax))`
    seconds into it, r the rate at its start and a the slope: one formula for up, down and flat, from 0 and
    to 0.
    """

    def __init__(self, schedule: Schedule, number: int, first: int) -> None:
        segment = schedule.find_segment_of_block(number)
        begin_s = segment.block_begin_s(number)
        end_s = segment.block_begin_s(number + 1)
        area = segment.area_before(begin_s)
        self.begin_ns = math.floor(begin_s * _NS)
        """The time at which it begins."""
        self._last_ns = max(self.begin_ns, math.floor(end_s * _NS) - 1)
        self.number, self.first = number, first
        """Its number, and how many arrivals are due before it."""
        self._first_area = float(max(first + Fraction(1, 2) - area, _LEAST_AREA))
        self._area = float(segment.area_before(end_s) - area)
        self._rate = float(segment.stage.level_after(begin_s - segment.begin_s))
        self._square = self._rate**2
        self._slope = 2 * float(segment.stage.slope)
        while self._square + self._slope * self._area < 0:  # rounded, where the rate falls to 0
            self._slope = math.nextafter(self._slope, 0)

    def list_even(self, indices: range) -> list[int]:
        """When even arrivals of the block are due; in rising order, as their indices are."""
        offsets = range(indices.start - self.first, indices.stop - self.first, indices.step)
        return self._list_dues([self._first_area + offset for offset in offsets])

    def find_even(self, index: int) -> int:
        """When an even arrival of the block is due."""
        return self.list_even(range(index, index + 1))[0]

    def list_random(self, chances: Iterable[float], cell: int = 0, cells: int = 1) -> list[int]:
        """When arrivals that lie at random in the block are due, from rising random numbers in `[0, 1)`.

        Args:
            chances: where in the cell each of them lies.
            cell: which part of the block they lie in, from 0.
            cells: how many parts of equal area the block has.
        """
        area, begin = self._area / cells, self._area / cells * cell
        return self._list_dues([begin + area * (chance or _LEAST_CHANCE) for chance in chances])

    def _list_dues(self, areas: Iterable[float]) -> list[int]:
        begin, rate, square, slope = self.begin_ns, self._rate, self._square, self._slope
        dues = [begin + int(2e9 * area / (rate + sqrt(square + slope * area))) for area in areas]
        for at in range(len(dues) - 1, -1, -1):
            if dues[at] <= self._last_ns:
                break
            dues[at] = self._last_ns  # rounded up to the end
        return dues


class RandomBlock(Block):
    """A block of random arrivals, divided into cells of equal area: only the cells that are needed are drawn.

    The arrivals of a Poisson process in the cells are independent of each other, given how many lie in each.
    A block with few arrivals has one cell.
    """

    def __init__(self, schedule: Schedule, number: int, first: int, count: int) -> None:
        super().__init__(schedule, number, first)
        self.cells = max(1, -(-count // MOST_DRAWN))
        """How many cells there are."""
        seed = draw_bits(schedule.seed ^ _CELLS_STREAM, number)
        self._counts = BlockCounts(range(self.cells), count, Fraction, seed)

    def count_before(self, cell: int) -> int:
        """How many of its arrivals lie before a cell; `cells` stands for the end."""
        return self._counts.count_before(cell)

    def find_cell(self, rank: int) -> int:
        """The cell that an arrival lies in, by its rank in the block."""
        return self._counts.find_block(rank)

    def find_cell_at(self, time_ns: int) -> int:
        """The first cell that begins at a time or after it; `cells` if there is none."""
        return bisect_left(range(self.cells), time_ns, key=self._find_begin)

    def _find_begin(self, cell: int) -> int:
        return self.list_random([0.0], cell, self.cells)[0]
