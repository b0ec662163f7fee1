"""Counts how many indices ask each target, without visiting each index.

The order of the targets repeats after some thousands of indices (`find_target_turns`), so a binary search in
one period counts any number of indices.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import gcd
from typing import NamedTuple


class TurnCount(NamedTuple):
    """The indices that ask one target.

    Attributes:
        target: its place among the targets.
        requests: how many they are; at least 1.
        first: the rank of the lowest of them.
        last: the rank of the highest of them.
    """

    target: int
    requests: int
    first: int
    last: int


class TurnCounts:
    """Counts evenly spaced indices by target; the lowest index has rank 0.

    Args:
        turns: which target each index asks, in the order of the indices from 0, repeated for ever.
        indices: in rising order.
    """

    def __init__(self, turns: Sequence[int], indices: range) -> None:
        length = len(turns)
        self._period = length // gcd(length, indices.step)
        self._ranks: dict[int, list[int]] = {}
        """By target, the ranks within one period that ask it."""
        begin, step = indices.start, indices.step
        for rank in range(self._period):
            self._ranks.setdefault(turns[(begin + rank * step) % length], []).append(rank)

    def count(self, start: int, stop: int) -> list[TurnCount]:
        """The counts of the ranks `start <= r < stop`, for each target that any of them asks."""
        counts = []
        for target, ranks in self._ranks.items():
            before, until = self._count_before(ranks, start), self._count_before(ranks, stop)
            if before < until:
                first, last = self._find_rank(ranks, before), self._find_rank(ranks, until - 1)
                counts.append(TurnCount(target, until - before, first, last))
        return counts

    def _count_before(self, ranks: Sequence[int], rank: int) -> int:
        rounds, rest = divmod(rank, self._period)
        return rounds * len(ranks) + bisect_left(ranks, rest)

    def _find_rank(self, ranks: Sequence[int], number: int) -> int:
        """The rank of the index that asks a target as the `number`-th one, from 0."""
        rounds, place = divmod(number, len(ranks))
        return rounds * self._period + ranks[place]
