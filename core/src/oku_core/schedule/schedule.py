"""A schedule: what the rate of an open run is at each time, and how many arrivals are due before it.

Times are seconds of the schedule's clock, which begins at 0 and stands still while the run is paused. With
Λ(t) as the integral of the rate over [0, t), the schedule has N = ⌊Λ(T)⌋ arrivals, of which B(t) = ⌈Λ(t) - ½⌉
are due before t: the half keeps arrivals off the borders of stages. Everything here is exact.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from oku_core.schedule.poisson import BlockCounts
from oku_core.schedule.stage import Arrivals, Stage

_HALF = Fraction(1, 2)
_get_name, _get_begin = attrgetter("stage.name"), attrgetter("begin_s")
_get_first_block, _get_stop = attrgetter("first_block"), attrgetter("stop")

Seconds = int | float | Fraction
"""Seconds of a schedule's clock; a float means exactly the number that it is."""


class Phase(NamedTuple):
    """A named part of a schedule in time.

    Attributes:
        name: unique in its schedule.
        begin_s: the second of the schedule with which it begins.
        end_s: that with which it ends.
        first: the first index that is due in it.
        stop: the first index that is due behind it.
    """

    name: str
    begin_s: Fraction
    end_s: Fraction
    first: int
    stop: int


@dataclass(frozen=True)
class Segment:
    """A stage at its place in a schedule.

    It is divided into blocks of one second; the last one may be shorter.

    Attributes:
        stage: the stage.
        begin_s: the second of the schedule with which it begins.
        area: the integral of the rate before it.
        first: the first index that is due in it.
        stop: the first index that is due behind it.
        first_block: the number of its first block.
        stop_block: the number of the first block behind it.
    """

    stage: Stage
    begin_s: Fraction
    area: Fraction
    first: int
    stop: int
    first_block: int
    stop_block: int

    @property
    def end_s(self) -> Fraction:
        """The second of the schedule with which it ends."""
        return self.begin_s + self.stage.duration

    def area_before(self, time_s: Fraction) -> Fraction:
        """The integral of the rate before a time in the segment."""
        return self.area + self.stage.area_after(time_s - self.begin_s)

    def count_before(self, time_s: Fraction) -> int:
        """How many arrivals of the whole schedule are due before a time in the segment, if they are even."""
        return min(self.stop, math.ceil(self.area_before(time_s) - _HALF))

    def block_begin_s(self, block: int) -> Fraction:
        """The second of the schedule with which a block begins; `stop_block` gives the end of the segment."""
        return min(self.end_s, self.begin_s + block - self.first_block)

    def build_counts(self, seed: int) -> BlockCounts:
        """How many arrivals lie in each block, if they are random."""
        blocks = range(self.first_block, self.stop_block)
        return BlockCounts(
            blocks, self.stop - self.first, lambda block: self.area_before(self.block_begin_s(block)), seed
        )


class Schedule:
    """The plan of an open run; immutable.

    Args:
        stages: what the rate is, one after the other. Those in a row that have one name are one phase.
        arrivals: how the arrivals follow the rate.
        seed: what random arrivals depend on.
    """

    def __init__(self, stages: Iterable[Stage], arrivals: Arrivals = Arrivals.EVEN, seed: int = 0) -> None:
        self.stages = tuple(stages)
        self.arrivals = arrivals
        self.seed = seed
        area = sum((stage.area for stage in self.stages), Fraction(0))
        self.requests = math.floor(area)
        """How many arrivals there are."""
        self.segments = _place(self.stages, self.requests)
        self.duration_s = sum((stage.duration for stage in self.stages), Fraction(0))
        """How many seconds it lasts."""
        self.blocks = self.segments[-1].stop_block
        """How many blocks there are: the seconds of each stage, counted through all of them."""
        self.phases = tuple(_list_phases(self.segments))
        self._counts: dict[int, BlockCounts] = {}
        if arrivals is Arrivals.POISSON:
            self._counts = {part.first_block: part.build_counts(seed) for part in self.segments}

    @property
    def peak_rate(self) -> Fraction:
        """The highest rate, in requests per second over all workers."""
        return max(stage.peak for stage in self.stages)

    def mean_rate(self, begin_s: Seconds = 0, end_s: Seconds | None = None) -> Fraction | None:
        """The mean rate between two times, or until the end, in requests per second over all workers.

        It is None if there is no time between them.
        """
        begin = min(Fraction(begin_s), self.duration_s)
        end = self.duration_s if end_s is None else min(Fraction(end_s), self.duration_s)
        return (self._area_before(end) - self._area_before(begin)) / (end - begin) if begin < end else None

    def count_before(self, time_s: Seconds) -> int:
        """B(t): how many arrivals are due before a time; of Poisson ones, at the borders of stages."""
        time = min(max(Fraction(time_s), Fraction(0)), self.duration_s)
        return self.find_segment(time).count_before(time)

    def find_segment(self, time_s: Seconds) -> Segment:
        """The segment that a time lies in; the last one for the end of the schedule."""
        return self.segments[max(0, bisect_right(self.segments, time_s, key=_get_begin) - 1)]

    def find_segment_of_block(self, block: int) -> Segment:
        """The segment that a block lies in."""
        return self.segments[bisect_right(self.segments, block, key=_get_first_block) - 1]

    def block_begin_s(self, block: int) -> Fraction:
        """The second of the schedule with which a block begins; for that behind the last, the end."""
        if block >= self.blocks:
            return self.duration_s
        return self.find_segment_of_block(block).block_begin_s(block)

    def count_before_block(self, block: int) -> int:
        """How many arrivals are due before a block begins; all for that behind the schedule."""
        if block >= self.blocks:
            return self.requests
        segment = self.find_segment_of_block(block)
        if counts := self._counts.get(segment.first_block):
            return segment.first + counts.count_before(block)
        return segment.count_before(segment.block_begin_s(block))

    def find_phase(self, index: int) -> Phase:
        """The phase in which an index is due."""
        return self.phases[bisect_right(self.phases, index, key=_get_stop)]

    def _area_before(self, time_s: Fraction) -> Fraction:
        return self.find_segment(time_s).area_before(time_s)


def _place(stages: Iterable[Stage], requests: int) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    begin_s, area, first, block = Fraction(0), Fraction(0), 0, 0
    for stage in stages:
        end = area + stage.area
        stop = min(requests, math.ceil(end - _HALF))
        stop_block = block + math.ceil(stage.duration)
        segments.append(Segment(stage, begin_s, area, first, stop, block, stop_block))
        begin_s, area, first, block = begin_s + stage.duration, end, stop, stop_block
    if not segments:
        raise ValueError("a schedule without a stage")
    return tuple(segments)


def _list_phases(segments: Iterable[Segment]) -> Iterable[Phase]:
    for name, group in groupby(segments, _get_name):
        parts = list(group)
        yield Phase(name, parts[0].begin_s, parts[-1].end_s, parts[0].first, parts[-1].stop)
