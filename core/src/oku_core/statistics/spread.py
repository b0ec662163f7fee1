"""How far the quantiles of a run may be from the true ones, and intervals around them.

A quantile is compared with its own resamples on a logarithmic scale. With few blocks, resamples vary too
little: their deviations are stretched as Student's distribution and the number of blocks require
(Hesterberg 2015, "What teachers should know about the bootstrap", section 4: narrowness bias).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from oku_core.accounting.measured_time import Time
from oku_core.results.sample import Sample
from oku_core.spec.load import WARM_UP
from oku_core.statistics.block_bootstrap import (
    FEWEST_S,
    PackedSeconds,
    choose_block_s,
    find_quantiles,
    pack_seconds,
    resample,
)
from oku_core.summary.latency_summary import SUMMARY_QUANTILES, LatencySummary, QuantileIntervals

LEVEL = 0.95
"""How often an interval holds what it is of."""
FINEST = math.log1p(1 / 64)
"""Kept seconds know a latency to this on a logarithmic scale: no interval reaches less far on either side."""
_FEWEST_ABOVE = 20
"""How many requests have to lie above a quantile."""
_LEAST_SEEN = 0.9
_NORMAL = NormalDist()


class TooLittleError(ValueError):
    """A run has too little for an interval; the message is a sentence without its subject."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far quantiles may be off.

    Attributes:
        deviations: by the name of each quantile, the logarithm of each resample less the logarithm of the
            run's.
        blocks: how many blocks of seconds the run has.
    """

    deviations: Mapping[str, Sequence[float]]
    blocks: float

    @property
    def stretch(self) -> float:
        """By which factor resamples of so few blocks vary too little."""
        return math.sqrt(self.blocks / (self.blocks - 1))


def measure_spread(samples: Sequence[Sample], time: Time, requests: int, *, seed: int = 0) -> Spread:
    """Measure the spread of one of the distributions of a run, without its warm-up.

    Args:
        samples: the kept ones, in order of time.
        time: which of them.
        requests: how many are in that distribution by the account.
        seed: of the resamples.

    Raises:
        TooLittleError: there are too few seconds, or they show too few of the requests.
    """
    seconds = pack_seconds([sample for sample in samples if sample.phase != WARM_UP], time)
    if seconds.length_s < FEWEST_S:
        raise TooLittleError(f"has {seconds.length_s} s of samples, {FEWEST_S} s are needed for an interval")
    if seconds.total < _LEAST_SEEN * requests or not seconds.total:
        share = f"{seconds.total / requests:.0%}" if requests else "none"
        raise TooLittleError(f"has samples that show {share} of its answers, for an interval 90% are needed")
    names = [
        name for name, level in SUMMARY_QUANTILES.items() if seconds.total * (1 - level) >= _FEWEST_ABOVE
    ]
    return _resample(seconds, names, seed)


def _resample(seconds: PackedSeconds, names: Sequence[str], seed: int) -> Spread:
    levels = [SUMMARY_QUANTILES[name] for name in names]
    block_s = choose_block_s(seconds.length_s)
    whole = find_quantiles(seconds, sum(seconds.bins), levels)
    drawn = resample(seconds, levels, block_s=block_s, seed=seed)
    deviations = {
        name: [value - middle for value in values]
        for name, middle, values in zip(names, whole, drawn, strict=True)
    }
    return Spread(deviations=deviations, blocks=seconds.length_s / max(block_s, seconds.bin_s))


def build_intervals(spread: Spread, exact_ms: LatencySummary) -> QuantileIntervals:
    """Intervals around the quantiles of the account, in ms; null where there are too few requests."""
    intervals: dict[str, tuple[float, float]] = {}
    for name, deviations in spread.deviations.items():
        value_ms = getattr(exact_ms, name)
        low, high = find_interval(deviations, 1 - LEVEL, spread.blocks - 1, spread.stretch)
        low, high = min(low, -FINEST), max(high, FINEST)
        intervals[name] = (_round(value_ms * math.exp(low)), _round(value_ms * math.exp(high)))
    return QuantileIntervals(**intervals)


def find_interval(
    deviations: Sequence[float], outside: float, freedom: float, stretch: float = 1.0
) -> tuple[float, float]:
    """The interval of deviations that leaves out a share `outside`, half of it at each end, stretched.

    Args:
        deviations: of the resamples.
        outside: the share that is left out.
        freedom: the degrees of freedom: how many blocks there are, less one.
        stretch: a factor in addition to Student's distribution.
    """
    ordered = sorted(deviations)
    factor = stretch * _find_student(1 - outside / 2, freedom) / _NORMAL.inv_cdf(1 - outside / 2)
    place = min(len(ordered) // 2, round(outside / 2 * len(ordered)))
    return ordered[place] * factor, ordered[-1 - place] * factor


def _find_student(level: float, freedom: float) -> float:
    """A quantile of Student's distribution (Abramowitz and Stegun 26.7.5); within 1 % from 5 degrees on."""
    z = _NORMAL.inv_cdf(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def _round(value_ms: float) -> float:
    return round(value_ms, 3)
