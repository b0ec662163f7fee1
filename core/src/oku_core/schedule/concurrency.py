"""How many requests may be in flight: over time, for each worker, and for a rate that a target holds up."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate

from oku_core.schedule.stage import Stage

_HALF = Fraction(1, 2)


class ConcurrencyPlan:
    """The requests in flight that the stages of a closed run ask for, over all workers; immutable.

    Args:
        stages: what the concurrency is, one after the other; at least one.
    """

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = tuple(stages)
        durations = (stage.duration for stage in self.stages)
        *self._begins, self.duration_s = accumulate(durations, initial=Fraction(0))

    def find_limit(self, time_s: float | Fraction) -> int:
        """The most requests in flight at a time of the run's clock; before and behind it, at its ends."""
        time = min(max(Fraction(time_s), Fraction(0)), self.duration_s)
        number = bisect_right(self._begins, time) - 1
        level = self.stages[number].level_after(time - self._begins[number])
        return math.floor(level + _HALF)


def share_of(total: int, rank: int, of: int) -> int:
    """What the worker with a rank from 0 has of a total that `of` workers share as evenly as it goes."""
    return total // of + (rank < total % of)


def count_in_flight(rate: float | Fraction, latency_s: float) -> int:
    """How many are in flight at a rate per second if each takes so long: Little's law, rounded up."""
    return math.ceil(round(float(rate) * latency_s, 6))
