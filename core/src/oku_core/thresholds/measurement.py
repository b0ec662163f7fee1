"""The measured requests of a threshold, and how many may still come."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Protocol

from oku_core.accounting.histogram import bucket_index, find_rank, find_values_us
from oku_core.accounting.measured_time import Time, Times
from oku_core.accounting.outcome import OUTCOMES, Outcome, count_sent
from oku_core.spec.values.threshold_reader import ComparisonOperator


class JudgedTimes(Times, Protocol):
    """A histogram that can be judged by."""

    @property
    def max_us(self) -> int:
        """The exact largest in µs; 0 if there is none."""

    def filled(self) -> Iterator[tuple[int, int]]:
        """Index and count of every bucket that holds something, in rising order."""


class Figures(Protocol):
    """What some requests sum to: an account, or the counts of a second."""

    @property
    def outcomes(self) -> Sequence[int]:
        """Counts in the order of `OUTCOMES`."""

    @property
    def times(self) -> Mapping[Time, JudgedTimes]:
        """The times that were measured; the others are empty."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measured requests of a threshold.

    Attributes:
        parts: what they sum to, in one part or several.
        rest: how many of them may still come, at most.
        is_rest_exact: whether as many will come, unless the run is cut short.
        is_over: whether the run is completed.
        is_cut_short: whether it is over without being completed: the rest never comes.
        is_balanced: whether its account balances.
        strained: how many requests of the run were measured while a worker was short of processor time or
            its event loop was late.
        seconds: for how long they were sent.
        planned_rps: the mean rate that was planned for this time; None without a rate.
    """

    parts: Sequence[Figures]
    rest: int = 0
    is_rest_exact: bool = True
    is_over: bool = False
    is_cut_short: bool = False
    is_balanced: bool = True
    strained: int = 0
    seconds: float = 0.0
    planned_rps: float | None = None

    @property
    def total(self) -> int:
        """How many requests have an outcome."""
        return sum(sum(part.outcomes) for part in self.parts)

    @property
    def sent(self) -> int:
        """How many requests were sent and have ended."""
        return sum(count_sent(part.outcomes) for part in self.parts)

    def count(self, outcomes: Iterable[Outcome]) -> int:
        """How many requests have one of these outcomes."""
        places = [OUTCOMES.index(outcome) for outcome in outcomes]
        return sum(part.outcomes[place] for part in self.parts for place in places)

    def count_within(self, time: Time, comparison: ComparisonOperator, limit_ms: Fraction) -> int:
        """How many times compare so with a limit for certain; buckets on the limit count as beyond it."""
        limit_us = limit_ms * 1000
        most_us = math.ceil(limit_us) - 1 if comparison.is_strict else math.floor(limit_us)
        beyond = bucket_index(max(0, most_us + 1))  # the first bucket that reaches beyond the limit
        return sum(
            count for histogram in self._list(time) for index, count in histogram.filled() if index < beyond
        )

    def count_timed(self, time: Time) -> int:
        """How many requests have such a time."""
        return sum(histogram.total for histogram in self._list(time))

    def find_quantile_us(self, time: Time, quantile: Fraction) -> int | None:
        """The time that a share `quantile` of all requests did not exceed, as in a summary.

        Requests without such a time are slower than all others: None if it is one of these, or if there is no
        request.
        """
        rank = find_rank(quantile, self.total)
        if not 0 < rank <= self.count_timed(time):
            return None
        first, *others = self._list(time)
        filled = first.filled()
        if others:
            counts: dict[int, int] = {}
            for index, count in chain.from_iterable(each.filled() for each in (first, *others)):
                counts[index] = counts.get(index, 0) + count
            filled = iter(sorted(counts.items()))
        return find_values_us(filled, [rank], self.find_max_us(time))[0]

    def sum_us(self, time: Time) -> int:
        """The exact sum of all such times."""
        return sum(histogram.sum_us for histogram in self._list(time))

    def find_max_us(self, time: Time) -> int:
        """The exact largest of all such times; 0 if there is none."""
        return max((histogram.max_us for histogram in self._list(time)), default=0)

    def _list(self, time: Time) -> Iterator[JudgedTimes]:
        return (part.times[time] for part in self.parts if time in part.times)
