"""How many arrivals of a schedule are due before any time, to compare with the requests sent.

It is as exact as the schedule is. Only inside a block with very many random arrivals, which would take long
to draw, their number is an estimate with a deviation.
"""

import math
from bisect import bisect_right
from typing import NamedTuple

from oku_core.schedule.block import MOST_DRAWN
from oku_core.schedule.poisson import ARRIVALS_STREAM
from oku_core.schedule.schedule import Schedule, Segment
from oku_core.schedule.stage import Arrivals
from oku_core.uniform import list_uniform

_HALF = 0.5
_ROUNDED = 1e-6
"""Arrivals due this little before a time, in arrivals or seconds, count as due at that time."""
_MOST_KEPT = 20_000
"""Drawn numbers; a run of weeks is asked about each of its seconds."""


class DueCount(NamedTuple):
    """How many arrivals are due before a time.

    Attributes:
        number: how many; the number that is expected where it is an estimate.
        variance: of an estimate; else 0.
    """

    number: float
    variance: float = 0.0


class DueCounts:
    """Counts the arrivals of a schedule.

    It computes in floats, because it is asked about each second of long runs.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._lines = [_Line(segment) for segment in schedule.segments]
        self._begins_s = [line.begin_s for line in self._lines]
        self._before_block: dict[int, int] = {}
        """Drawn numbers: to draw them again takes a tenth of a millisecond each."""
        self._within_block: dict[tuple[int, float], int] = {}
        """Of the arrivals of a block, how many lie in a first share of its area."""
        self.duration_s = float(schedule.duration_s)
        """How many seconds the schedule lasts."""
        self.peak_rps = float(schedule.peak_rate)
        """The highest rate, over all workers."""

    def count_before(self, time_s: float) -> DueCount:
        """How many arrivals are due before a time of the schedule's clock."""
        line = self._lines[max(0, bisect_right(self._begins_s, time_s) - 1)]
        elapsed_s = min(max(0.0, time_s - line.begin_s), line.duration_s)
        if self._schedule.arrivals is Arrivals.POISSON:
            return self._count_random(line, elapsed_s)
        return DueCount(line.count_before(elapsed_s))

    def _count_random(self, line: "_Line", elapsed_s: float) -> DueCount:
        whole = math.floor(elapsed_s + _ROUNDED)
        block = line.first_block + whole
        first = self._count_before_block(block)
        if elapsed_s - whole < _ROUNDED:
            return DueCount(first)
        number = self._count_before_block(block + 1) - first
        begin, end = line.area_after(whole), line.area_after(min(whole + 1.0, line.duration_s))
        share = (line.area_after(elapsed_s) - begin) / (end - begin) if end > begin else 0.0
        if number <= MOST_DRAWN:
            return DueCount(first + self._count_drawn(block, range(first, first + number), share))
        return DueCount(first + number * share, number * share * (1 - share))

    def _count_drawn(self, block: int, indices: range, share: float) -> int:
        """How many arrivals of a block lie in a share of its area: each by the number that a lane draws."""
        if (block, share) not in self._within_block:
            if len(self._within_block) >= _MOST_KEPT:
                self._within_block.clear()
            chances = list_uniform(self._schedule.seed ^ ARRIVALS_STREAM, indices)
            self._within_block[block, share] = sum(chance < share for chance in chances)
        return self._within_block[block, share]

    def _count_before_block(self, block: int) -> int:
        if block not in self._before_block:
            if len(self._before_block) >= _MOST_KEPT:
                self._before_block.clear()
            self._before_block[block] = self._schedule.count_before_block(block)
        return self._before_block[block]


class _Line:
    """A segment of the schedule in floats."""

    def __init__(self, segment: Segment) -> None:
        stage = segment.stage
        self.begin_s, self.duration_s = float(segment.begin_s), float(stage.duration)
        self.first_block = segment.first_block
        self._first, self._stop = segment.first, segment.stop
        # Areas are counted from the segment's own arrivals on, so they stay precise in long schedules.
        self._area = float(segment.area - segment.first)
        self._rate, self._half_slope = float(stage.begin), float(stage.slope) / 2

    def area_after(self, elapsed_s: float) -> float:
        """The integral of the rate over the first seconds of the segment."""
        return (self._rate + self._half_slope * elapsed_s) * elapsed_s

    def count_before(self, elapsed_s: float) -> int:
        """How many even arrivals of the whole schedule are due before a time in the segment."""
        if elapsed_s >= self.duration_s:
            return self._stop
        within = math.ceil(self._area + self.area_after(elapsed_s) - _HALF - _ROUNDED)
        return min(self._stop, self._first + max(0, within))
