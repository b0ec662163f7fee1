"""Sorts the pending requests of an open run by lane, and finds those that are past: pure rules.

A piece is dealt as one lease, so it stays in one lane of one wave.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from oku_core.accounting.index_ranges import Range
from oku_core.messaging.lease import MOST_RANGES
from oku_core.schedule.lane import Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave

_NS = 10**9


class Piece(NamedTuple):
    """Pending requests of one lane.

    Attributes:
        wave: their wave.
        lane: their lane of it.
        ranges: their coordinates, in rising order.
    """

    wave: Wave
    lane: int
    ranges: Sequence[Range]


def cut_pieces(waves: Iterable[Wave], pending: Iterable[Range]) -> Iterator[Piece]:
    """Cut pending coordinates into pieces, in rising order; coordinates in no wave are left out.

    Args:
        waves: in rising order.
        pending: in rising order.
    """
    left = iter(pending)
    start, stop = next(left, (math.inf, math.inf))
    for wave in waves:
        ranges: list[Range] = []
        while start < wave.stop:
            first, last = max(int(start), wave.begin), min(int(stop), wave.stop)
            if first < last:
                ranges.append((first, last))
            if stop > wave.stop:
                break
            start, stop = next(left, (math.inf, math.inf))
        yield from _split_by_lane(wave, ranges)


def _split_by_lane(wave: Wave, ranges: Iterable[Range]) -> Iterator[Piece]:
    mine: list[Range] = []
    lane, lane_stop = 0, 0
    for start, stop in ranges:
        at = start
        while at < stop:
            if at >= lane_stop or len(mine) == MOST_RANGES:
                if mine:
                    yield Piece(wave, lane, mine)
                lane, mine = wave.lane_of(at), []
                lane_stop = wave.lane_range(lane)[1]
            mine.append((at, min(stop, lane_stop)))
            at = mine[-1][1]
    if mine:
        yield Piece(wave, lane, mine)


def split_at(schedule: Schedule, piece: Piece, time_s: float) -> tuple[list[Range], list[Range]]:
    """Split a piece into the coordinates that are due before a time of the schedule, and the later ones."""
    begin_s, end_s = measure_span(schedule, piece.wave)
    if time_s <= begin_s:
        return [], list(piece.ranges)
    if time_s >= end_s:
        return list(piece.ranges), []
    first = Lane(schedule, piece.wave, piece.lane).find_first_due(math.ceil(time_s * _NS))
    before = [(start, min(stop, first)) for start, stop in piece.ranges if start < first]
    after = [(max(start, first), stop) for start, stop in piece.ranges if stop > first]
    return before, after


def find_earliest_due(schedule: Schedule, pieces: Iterable[Piece]) -> float:
    """When the first request of some pieces is due, in seconds of the schedule; infinite without any."""
    earliest = math.inf
    for piece in pieces:
        if measure_span(schedule, piece.wave)[0] < earliest:
            start = piece.ranges[0][0]
            dues = Lane(schedule, piece.wave, piece.lane).iter_dues(start, start + 1)
            earliest = min(earliest, *(due_ns / _NS for _, due_ns in dues))
    return earliest


def measure_span(schedule: Schedule, wave: Wave) -> tuple[float, float]:
    """The start and end of a wave, in seconds of the schedule."""
    return float(schedule.block_begin_s(wave.block)), float(schedule.block_begin_s(wave.next_block))
