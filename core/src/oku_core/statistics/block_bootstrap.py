"""The moving-block bootstrap: what the quantiles of a run might have been, had its time gone otherwise.

Neighbouring seconds are alike, so whole blocks of seconds are drawn, with replacement, until they are as many
as the run has (Künsch 1989); blocks that reach over the end go on at the beginning, so that every second is
drawn equally often (Politis and Romano 1992).
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from oku_core.statistics.packed_seconds import PackedSeconds

RESAMPLES = 1000
BLOCK_S = 10
"""The usual length of a block; hiccups and pauses of a target rarely last longer."""
FEWEST_BLOCKS = 6
"""Fewer say too little about how blocks differ; a run of less than a minute has as many shorter ones."""
FEWEST_S = 30
"""In a shorter run, blocks of less than 5 s would miss what neighbouring seconds have in common."""


def choose_block_s(length_s: int) -> int:
    """The length of blocks: 10 s, the root of the time where that is longer, a sixth where it is shorter."""
    return max(min(BLOCK_S, length_s // FEWEST_BLOCKS), math.isqrt(length_s))


def resample(
    seconds: PackedSeconds, quantiles: Sequence[float], *, block_s: int, seed: int
) -> list[list[float]]:
    """For each quantile, the logarithms of its values in µs in all resamples; the same seed draws the same.

    Args:
        seconds: at least one bin, and at least one request.
        quantiles: from 0 to 1.
        block_s: the length of a block.
        seed: of the random numbers.
    """
    count = len(seconds.bins)
    length = min(count, max(1, round(block_s / seconds.bin_s)))
    whole, rest = divmod(count, length)
    blocks, ends = _sum_blocks(seconds.bins, length), _sum_blocks(seconds.bins, rest)
    random = Random(seed)  # noqa: S311  # the same figures each time, no secret
    values: list[list[float]] = [[] for _ in quantiles]
    for _ in range(RESAMPLES):
        drawn = sum(random.choices(blocks, k=whole))
        if rest:
            drawn += random.choice(ends)
        for row, value in zip(values, find_quantiles(seconds, drawn, quantiles), strict=True):
            row.append(value)
    return values


def find_quantiles(seconds: PackedSeconds, packed: int, quantiles: Sequence[float]) -> list[float]:
    """The logarithms of the quantiles, in µs, of a sum of bins."""
    reached = seconds.unpack(packed)
    total = reached[-1]
    return [_interpolate(seconds, reached, quantile * total) for quantile in quantiles]


def _interpolate(seconds: PackedSeconds, reached: Sequence[int], rank: float) -> float:
    place = bisect_left(reached, rank)
    before = reached[place - 1] if place else 0
    share = (rank - before) / max(1, reached[place] - before)
    low_us, high_us = seconds.bounds_us[place]
    return math.log(max(1, low_us) + share * (high_us - low_us))


def _sum_blocks(bins: Sequence[int], length: int) -> list[int]:
    """The sums of as many neighbouring bins, one for each bin that they begin with."""
    ring = [*bins, *bins[:length]]
    reached = list(accumulate(ring, initial=0))
    return [reached[start + length] - reached[start] for start in range(len(bins))]
