"""The waves of a schedule, one after the other, each for as many lanes as workers live at its time."""

import math
from bisect import bisect_right

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave

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
