"""Unix time that does not jump: the wall clock of when the process began, carried on by the monotonic clock.

Setting the clock of a machine, by hand or by NTP, moves `time.time()`. What is measured between two readings
of a `SteadyClock` is right all the same, and the times of one process stay in order.
"""

import time
from collections.abc import Callable

SMALLEST_STEP_S = 1.0
"""Less is no step: NTP slews, and the two clocks are not read at the same instant."""


class SteadyClock:
    """A clock of one process. Safe to read from several threads.

    Args:
        wall: Unix time, which may jump.
        monotonic: seconds that never do.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset_s = wall() - monotonic()
        self.wall_ahead_s = 0.0
        """How far the wall clock is ahead, as of the last `find_step`; below 0 when it is behind."""

    def now(self) -> float:
        """Unix time in seconds, as the wall clock would tell it had nobody set it."""
        return self._monotonic() + self._offset_s

    def find_step(self) -> float | None:
        """By how many seconds the wall clock was set since the last look, below 0 for back; or None."""
        ahead_s = self._wall() - self.now()
        step_s = ahead_s - self.wall_ahead_s
        if abs(step_s) < SMALLEST_STEP_S:
            return None
        self.wall_ahead_s = ahead_s
        return step_s

    def anchor(self) -> None:
        """Follow the wall clock again; only while nothing is being measured."""
        self._offset_s = self._wall() - self._monotonic()
        self.wall_ahead_s = 0.0
