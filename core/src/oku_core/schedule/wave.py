"""A wave: some seconds of an open schedule, dealt out to all workers in lanes.

An index is the rank of an arrival in the schedule; a coordinate is its place in the ledger. Lane k of W has
every W-th arrival of the wave from the k-th on, so that the arrivals of all lanes interleave exactly as if
one process sent them; its coordinates are contiguous, so that a lease of them is a range.
"""

import math
from bisect import bisect_right

import msgspec

from oku_core.schedule.schedule import Schedule


class ActivePeriod(msgspec.Struct, frozen=True):
    """When the clock of a schedule runs.

    Attributes:
        starts_at: the Unix time, on the coordinator's clock, at which the period starts.
        offset_s: the time of the schedule's clock at that moment.
    """

    starts_at: float
    offset_s: float

    def unix_time(self, schedule_s: float) -> float:
        """The Unix time, on the coordinator's clock, at which the schedule's clock shows `schedule_s`."""
        return self.starts_at + (schedule_s - self.offset_s)

    def schedule_s(self, unix_time: float) -> float:
        """The time of the schedule's clock at a Unix time of the coordinator's clock."""
        return self.offset_s + (unix_time - self.starts_at)


class Wave(msgspec.Struct, frozen=True):
    """The indices, and the coordinates, `begin <= i < begin + count`.

    Attributes:
        begin: how many arrivals the schedule has before the wave.
        count: how many arrivals are in it; at least 1.
        lanes: among how many lanes they are divided.
        block: the number of its first block (`Schedule.blocks`).
        blocks: how many of its arrivals lie before the end of each of its blocks; the last is `count`.

    Raises:
        ValueError: the numbers contradict each other.
    """

    begin: int
    count: int
    lanes: int
    block: int
    blocks: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a message."""
        rising = [0, *self.blocks, self.count]
        is_sound = self.begin >= 0 and self.block >= 0 and self.lanes >= 1 and self.count >= 1
        if not is_sound or rising != sorted(rising) or self.blocks[-1:] != (self.count,):
            raise ValueError(f"a wave from {self.begin} of {self.count} in {self.lanes} lanes is not sound")

    @property
    def stop(self) -> int:
        """The first index, and coordinate, behind the wave."""
        return self.begin + self.count

    @property
    def next_block(self) -> int:
        """The number of the first block behind the wave."""
        return self.block + len(self.blocks)

    def offset(self, lane: int) -> int:
        """How many arrivals the lanes before a lane have."""
        share, rest = divmod(self.count, self.lanes)
        return lane * share + min(lane, rest)

    def lane_range(self, lane: int) -> tuple[int, int]:
        """The coordinates `[start, stop)` of a lane."""
        return self.begin + self.offset(lane), self.begin + self.offset(lane + 1)

    def lane_of(self, coordinate: int) -> int:
        """The lane that a coordinate is in."""
        share, rest = divmod(self.count, self.lanes)
        rank = coordinate - self.begin
        long = rest * (share + 1)
        return rank // (share + 1) if rank < long else rest + (rank - long) // share

    def count_in_lane(self, lane: int, rank: int) -> int:
        """How many of the wave's first `rank` arrivals a lane has."""
        return -((lane - rank) // self.lanes)


_LEAST_LENGTH_S = 2
_LANES_PER_SECOND = 100
"""How many lanes a coordinator deals out in a second."""


def plan_wave(schedule: Schedule, block: int, lanes: int) -> Wave | None:
    """The next wave that begins with a block, or behind it where it has no arrival; None at the end.

    It lasts at least 2 s, and a second for each 100 lanes, unless its stage is shorter; and less than twice
    as long. It never crosses the end of a stage, so it lies in one phase.

    Args:
        schedule: the schedule.
        block: the number of the first block that is in no wave: `next_block` of the wave before, at first 0.
        lanes: among how many lanes to divide it.
    """
    begin = schedule.count_before_block(block)
    if begin >= schedule.requests:
        return None
    count_before, numbers = schedule.count_before_block, range(schedule.blocks)
    block = bisect_right(numbers, begin, block, key=lambda number: count_before(number + 1))
    length = max(_LEAST_LENGTH_S, math.ceil(lanes / _LANES_PER_SECOND))
    left = schedule.find_segment_of_block(block).stop_block - block
    stop = block + (left if left < 2 * length else length)
    blocks = tuple(count_before(number) - begin for number in range(block + 1, stop + 1))
    return Wave(begin, blocks[-1], lanes, block, blocks)
