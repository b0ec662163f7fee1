"""When a worker may send, if all workers together must not send faster than a rate.

Each has every W-th slot of that rate, so that together they are as even as one. A slot that was not used is
lost, except for the few that pass while a worker's event loop sleeps: who idled may not send a burst.
"""

import math
from fractions import Fraction

CATCH_UP_S = Fraction(1, 100)
"""How late a slot may be used; at low rates, until the next one comes."""
_NS = 10**9


class Pacer:
    """The slots of one worker.

    In any t seconds it may send its share of the rate times (t + `CATCH_UP_S`) requests at most, and two
    more.

    Args:
        rate: requests per second, over all workers; above 0.
        rank: the worker's place among them, from 0.
        of: how many they are.
        now_ns: the time from which on slots count, in nanoseconds of any clock that all workers share.

    Attributes:
        next_ns: the time of the first slot that was neither used nor lost.
    """

    next_ns: int

    def __init__(self, rate: Fraction, rank: int, of: int, now_ns: int) -> None:
        # The slot k is at (2 rank + 1 + 2 k of) x unit / per_unit nanoseconds: integers, as this is hot.
        self._unit, self._per_unit = _NS * rate.denominator, 2 * rate.numerator
        self._first, self._step = 2 * rank + 1, 2 * of
        self._most_late = math.ceil(CATCH_UP_S * rate / of)
        self._go_to(self._count_until(now_ns))

    def count_allowed(self, now_ns: int) -> int:
        """How many requests may be sent now; slots that are too late are lost."""
        if now_ns < self.next_ns:  # mostly, and quicker than a division of such long integers
            return 0
        passed = self._count_until(now_ns)
        if (oldest := passed - self._most_late) > self._next:
            self._go_to(oldest)
        return passed - self._next

    def use(self, count: int) -> None:
        """Note that requests were sent, no more than allowed."""
        self._go_to(self._next + count)

    def _go_to(self, slot: int) -> None:
        self._next = slot
        self.next_ns = -((self._first + slot * self._step) * self._unit // -self._per_unit)

    def _count_until(self, time_ns: int) -> int:
        """How many slots have come until a time, or at it."""
        reached = time_ns * self._per_unit - self._first * self._unit
        return reached // (self._step * self._unit) + 1
