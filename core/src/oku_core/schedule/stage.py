"""A stage: a length of time in which a rate, or a concurrency, is constant or changes linearly.

All numbers are fractions, so that sums over stages are exact.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate


class Arrivals(StrEnum):
    """How arrivals follow a rate."""

    EVEN = "even"
    """At equal distances, or at the distances of a ramp; the default."""
    POISSON = "poisson"
    """At random and independent of each other, like the requests of many users; drawn from a seed."""


@dataclass(frozen=True)
class Stage:
    """A straight line over some seconds.

    Attributes:
        name: the name of the phase that the stage is, or is a part of.
        duration: how many seconds it lasts; above 0.
        begin: the requests per second, or the requests in flight, over all workers, with which it begins.
        end: those with which it ends.

    Raises:
        ValueError: the duration is not above 0, or the stage begins or ends below 0.
    """

    name: str
    duration: Fraction
    begin: Fraction
    end: Fraction

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.duration <= 0 or self.begin < 0 or self.end < 0:
            raise ValueError(f"a stage of {self.duration} s from {self.begin} to {self.end}")

    @property
    def slope(self) -> Fraction:
        """By how much the line rises in a second."""
        return (self.end - self.begin) / self.duration

    @property
    def peak(self) -> Fraction:
        """The highest point of the line."""
        return max(self.begin, self.end)

    @property
    def area(self) -> Fraction:
        """The area under the whole line: the arrivals of a rate."""
        return (self.begin + self.end) / 2 * self.duration

    def level_after(self, elapsed: Fraction) -> Fraction:
        """The height of the line `elapsed` seconds after its start."""
        return self.begin + self.slope * elapsed

    def area_after(self, elapsed: Fraction) -> Fraction:
        """The area under the first `elapsed` seconds of the line."""
        return (self.begin + self.level_after(elapsed)) / 2 * elapsed

    def cut(self, elapsed: Fraction) -> tuple["Stage", "Stage"]:
        """The two parts before and after `elapsed` seconds, which must lie inside the stage."""
        level = self.level_after(elapsed)
        return (
            replace(self, duration=elapsed, end=level),
            replace(self, duration=self.duration - elapsed, begin=level),
        )


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
