"""How far an execution may go before it writes down how far it may go then.

To write for each request would cost more than the rest of taking it. So a stride of some positions is written
before the first of them is taken; its length follows the pace, so that a stride lasts for some hundredths of
a second, however fast the requests are.
"""

import time
from collections.abc import Callable

from oku_core.process.clock import Clock

_SHORT_S, _LONG_S = 0.02, 0.1
"""A stride that lasts for less is too short, and one that lasts for more too long."""
LONGEST_STRIDE = 256


class FlightRecording:
    """What one execution writes of itself.

    Args:
        write: writes the first position that will certainly not be taken before the next call.
        monotonic: monotonic seconds.
    """

    __slots__ = ("_at", "_monotonic", "_reached", "_stride", "_write")

    def __init__(self, write: Callable[[int], None], monotonic: Clock = time.monotonic) -> None:
        self._write = write
        self._monotonic = monotonic
        self._reached = 0
        self._stride = 1
        self._at = monotonic()

    def extend(self, taken: int, bound: int) -> int:
        """The first position that must not be taken before the next call; it is above `taken`, and written.

        Args:
            taken: the next position.
            bound: the first one that must not be taken for other reasons, above `taken`.
        """
        if taken >= self._reached:
            now = self._monotonic()
            lasted_s, self._at = now - self._at, now
            if lasted_s < _SHORT_S:
                self._stride = min(2 * self._stride, LONGEST_STRIDE)
            elif lasted_s > _LONG_S:
                self._stride = max(1, self._stride // 2)
            self._reached = min(taken + self._stride, bound)
            self._write(self._reached)
        return min(bound, self._reached)
