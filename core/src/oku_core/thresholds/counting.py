"""The law of certain verdicts: a condition on how many of some requests are hits, while the rest is to come.

Of `total` requests so far, some are *hits*: fast enough, or of the outcomes that are counted. The largest and
the smallest share that it can end with are reached when all of the rest are hits, and when none is; the
unknown counts as either, as requested. So a condition that fails with the one is lost, and one that holds
with the other is won, and neither changes with what the rest brings: each request that ends moves both bounds
towards each other, or leaves them.
"""

from dataclasses import dataclass
from fractions import Fraction

from oku_core.spec.values.threshold_reader import ComparisonOperator
from oku_core.thresholds.threshold_summary import ThresholdVerdict


@dataclass(frozen=True, kw_only=True)
class HitCount:
    """How many of some requests are hits.

    Attributes:
        hits: requests that are.
        total: all requests so far, hits or not.
        unknown: requests among the others without a known result: not sent, or lost.
        strained: requests that may have become what they are because a worker was short of processor time:
            hits if the limit is an upper one, others if it is a lower one.
        rest: how many requests may still come, at most.
    """

    hits: int
    total: int
    unknown: int = 0
    strained: int = 0
    rest: int = 0


@dataclass(frozen=True)
class Condition:
    """A bound on a number of hits.

    Args:
        comparison: how it compares with the limit.
        limit: the share of the requests, or the number of them.
        is_share: which of the two.
    """

    comparison: ComparisonOperator
    limit: Fraction
    is_share: bool

    def holds(self, hits: int, total: int) -> bool:
        """Whether this many hits of this many requests, more than none, satisfy the limit."""
        bound = self.limit * total if self.is_share else self.limit
        return compare(Fraction(hits), self.comparison, bound)

    def judge(self, count: HitCount) -> ThresholdVerdict:
        """The verdict that holds for certain, or that there is none yet."""
        total = count.total + count.rest
        if not total:
            return ThresholdVerdict.UNDECIDED
        least, most = count.hits, count.hits + count.unknown + count.rest
        worst, best = (most, least) if self.comparison.is_upper else (least, most)
        if self.holds(worst, total):
            return ThresholdVerdict.PASSED
        # A worker that is short of processor time makes figures worse, never better.
        best += -count.strained if self.comparison.is_upper else count.strained
        return ThresholdVerdict.UNDECIDED if self.holds(best, total) else ThresholdVerdict.FAILED

    def count_against(self, count: HitCount) -> int:
        """How many requests so far count against it."""
        return count.hits if self.comparison.is_upper else count.total - count.hits

    def count_allowed(self, total: int) -> int:
        """How many of all requests may count against it, by their total; negative if it cannot hold."""
        bound = self.limit * total if self.is_share else self.limit
        if not self.comparison.is_upper:
            bound = total - bound
        return -(-bound // 1) - 1 if self.comparison.is_strict else bound // 1


def compare(value: Fraction, comparison: ComparisonOperator, limit: Fraction) -> bool:
    """Whether a value compares with a limit as it must."""
    if comparison.is_strict:
        return value < limit if comparison.is_upper else value > limit
    return value <= limit if comparison.is_upper else value >= limit
