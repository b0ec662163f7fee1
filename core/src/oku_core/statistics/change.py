"""Whether the quantiles of two runs differ by more than chance.

All intervals of a comparison hold at once: with five quantiles at 95 % each, two equal runs would seem to
differ in one case of ten. Their level is found from the resamples themselves, which are alike for
neighbouring quantiles, so less is lost than by dividing 5 % among them.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import NormalDist, pvariance

import msgspec

from oku_core.accounting.measured_time import Time
from oku_core.statistics.spread import FINEST, LEVEL, Spread, find_interval

_POWER = 0.8
_NORMAL = NormalDist()
_VISIBLE = 1 + _NORMAL.inv_cdf(_POWER) / _NORMAL.inv_cdf((1 + LEVEL) / 2)
"""A change of this many half-widths of its interval is seen in at least 80 % of all comparisons."""


class ChangeVerdict(StrEnum):
    """The verdict on a quantile of the second run."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no_difference_shown"


class QuantileChange(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of a quantile between two runs, as shares of the first: 0.1 is 10 %.

    Attributes:
        change: the difference of the exact quantiles.
        low: the lower end of its interval.
        high: the upper end.
        verdict: the conclusion.
        visible: the smallest slowdown that would have been seen in four of five comparisons.
    """

    change: float
    low: float
    high: float
    verdict: ChangeVerdict
    visible: float


def measure_changes(
    first: Mapping[Time, Spread], second: Mapping[Time, Spread], ratios: Mapping[tuple[Time, str], float]
) -> dict[tuple[Time, str], QuantileChange]:
    """Compare quantiles, each named by its distribution and its own name.

    Args:
        first: the spreads of a run by distribution, measured with one seed.
        second: the same of another run, measured with another seed.
        ratios: the exact quantile of the second run as a multiple of the first run's, for each to compare.
    """
    noises = {name: _subtract(first[name[0]], second[name[0]], name[1]) for name in ratios}
    if not noises:
        return {}
    outside = _find_outside(list(noises.values()))
    changes = {}
    for name, noise in noises.items():
        freedom = _count_freedom(first[name[0]], second[name[0]], name[1])
        low, high = find_interval(noise, outside, freedom)
        changes[name] = _judge(math.log(ratios[name]), min(low, -2 * FINEST), max(high, 2 * FINEST))
    return changes


def _judge(difference: float, low: float, high: float) -> QuantileChange:
    """Judge a difference of logarithms by the interval of what chance does to it."""
    verdict = ChangeVerdict.NO_DIFFERENCE
    if difference + low > 0:
        verdict = ChangeVerdict.SLOWER
    elif difference + high < 0:
        verdict = ChangeVerdict.FASTER
    return QuantileChange(
        change=_as_share(difference),
        low=_as_share(difference + low),
        high=_as_share(difference + high),
        verdict=verdict,
        visible=_as_share(_VISIBLE * max(-low, high)),
    )


def _as_share(difference: float) -> float:
    return round(math.expm1(difference), 4)


def _subtract(first: Spread, second: Spread, quantile: str) -> list[float]:
    pairs = zip(first.deviations[quantile], second.deviations[quantile], strict=True)
    return [second.stretch * theirs - first.stretch * ours for ours, theirs in pairs]


def _count_freedom(first: Spread, second: Spread, quantile: str) -> float:
    """The degrees of freedom of a difference of two means (Welch 1947)."""
    parts = [
        (pvariance(spread.deviations[quantile]) * spread.stretch**2, spread.blocks - 1)
        for spread in (first, second)
    ]
    whole = sum(variance for variance, _ in parts)
    return whole**2 / sum(variance**2 / freedom for variance, freedom in parts) if whole else parts[0][1]


def _find_outside(noises: Sequence[Sequence[float]]) -> float:
    """The share that each interval has to leave out so that all of them hold in `LEVEL` of the resamples."""
    count = len(noises[0])
    extremes = [1.0] * count
    for noise in noises:
        for place, resample in enumerate(sorted(range(count), key=noise.__getitem__)):
            share = (2 * min(place, count - 1 - place) + 1) / count
            extremes[resample] = min(extremes[resample], share)
    return sorted(extremes)[round((1 - LEVEL) * count)]
