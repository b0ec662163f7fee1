"""The moving-block bootstrap: quantiles of a run as they might have been, had its time gone otherwise.

Neighbouring seconds are alike, so whole blocks of seconds are drawn, with replacement, until they are as many
as the run has (Künsch 1989); blocks that reach over the end go on at the beginning, so that every second is
drawn equally often (Politis and Romano 1992).

The distributions of seconds are packed so that hundreds of them are added in microseconds: each becomes one
large integer with 64 bits for each bucket, for how many requests were in that bucket or below. The sum of
such integers is the sum of the distributions, and Python adds them as fast as memory is read.
"""

import math
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from random import Random

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, coarse_bounds_us
from oku_core.accounting.measured_time import Time
from oku_core.results.sample import Sample, find_step

_LANE_BYTES = 8
_USUAL_SHARE = 0.9
RESAMPLES = 1000
BLOCK_S = 10
"""The usual length of a block; hiccups and pauses of a target rarely last longer."""
FEWEST_BLOCKS = 6
"""Fewer show too little of how blocks differ; a run of less than a minute has this many shorter ones."""
FEWEST_S = 30
"""In a shorter run, blocks of less than 5 s would miss what neighbouring seconds have in common."""


@dataclass(frozen=True, kw_only=True)
class PackedSeconds:
    """The distributions of a run in bins of time of one length.

    Attributes:
        bounds_us: the lower and the upper end of each bucket that is not always empty, in µs, rising.
        bins: the cumulative counts of each bin, in order of time, packed.
        bin_s: the length of a bin in seconds.
        total: how many requests they are of.
    """

    bounds_us: Sequence[tuple[int, int]]
    bins: Sequence[int]
    bin_s: int
    total: int

    @property
    def length_s(self) -> int:
        """How many seconds these are."""
        return len(self.bins) * self.bin_s

    def unpack(self, packed: int) -> Sequence[int]:
        """The cumulative counts of a sum of bins, by bucket."""
        counts = array("Q")
        counts.frombytes(packed.to_bytes(len(self.bounds_us) * _LANE_BYTES, sys.byteorder))
        return counts


def pack_seconds(samples: Sequence[Sample], time: Time) -> PackedSeconds:
    """Pack one of the distributions of kept samples, which are in order of time.

    The samples of a long run are merged into longer ones, the newest not yet: all are brought to one length.
    """
    bin_s = _choose_bin_s(samples)
    histograms: list[list[HistogramSnapshot]] = [
        [sample.histogram(time) for sample in group]
        for _, group in groupby(samples, lambda sample: find_step(sample.at, bin_s))
    ]
    buckets = sorted({index for group in histograms for each in group for index in each.buckets[0::2]})
    lanes = {index: lane for lane, index in enumerate(buckets)}
    return PackedSeconds(
        bounds_us=[coarse_bounds_us(bucket_bounds_us(index)[0]) for index in buckets],
        bins=[_pack(group, lanes) for group in histograms],
        bin_s=bin_s,
        total=sum(each.total for group in histograms for each in group),
    )


def _choose_bin_s(samples: Sequence[Sample]) -> int:
    """The power of two of seconds that hardly any sample exceeds: samples are merged along such steps."""
    lengths = sorted(sample.seconds for sample in samples)
    usual_s = round(lengths[int(_USUAL_SHARE * len(lengths))]) if lengths else 1
    return 1 << max(0, usual_s - 1).bit_length()


def _pack(histograms: Sequence[HistogramSnapshot], lanes: dict[int, int]) -> int:
    counts = [0] * len(lanes)
    for histogram in histograms:
        for index, count in histogram.filled():
            counts[lanes[index]] += count
    return int.from_bytes(array("Q", accumulate(counts)).tobytes(), sys.byteorder)


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
