"""Writes the percentile distribution of a histogram in the text format that HdrHistogram plotters read.

The steps follow HdrHistogram's `PercentileIterator`: `TICKS_PER_HALF` between 0 and 50 %, as many between 50
and 75 %, and so on towards 100 %. Any HdrHistogram library that decodes `histogram` of the summary writes the
same lines, but for the last bucket: it ends at the exact maximum here, as it does in the summary.
"""

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from oku_core.accounting.histogram import BUCKETS, SUB_BUCKET_BITS, HistogramSnapshot, bucket_bounds_us

TICKS_PER_HALF = 5
"""Steps for each halving of the distance to 100 %; 5 is the default of HdrHistogram."""
_US_IN_MS = 1000


class PercentileRow(NamedTuple):
    """`total` requests, at least the fraction `level` of all, took no longer than `value_us`."""

    value_us: int
    level: float
    total: int


def build_percentile_rows(latency: HistogramSnapshot) -> Iterator[PercentileRow]:
    """Yield the rows of the distribution in ascending order; none if there are no latencies."""
    whole, percent = latency.total, 0.0
    highest_us = 0
    for index, seen in zip(latency.buckets[0::2], accumulate(latency.buckets[1::2]), strict=True):
        highest_us = min(bucket_bounds_us(index)[1], latency.max_us)
        while 100 * seen / whole >= percent:
            yield PercentileRow(highest_us, percent / 100, seen)
            percent = _climb(percent)
            if seen == whole:
                break
    if whole:
        yield PercentileRow(highest_us, 1.0, whole)


def build_hgrm(latency: HistogramSnapshot) -> str:
    """Write what `outputPercentileDistribution` of HdrHistogram writes, in ms."""
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for value_us, level, total in build_percentile_rows(latency):
        tail = f" {1 / (1 - level):14.2f}" if level < 1 else ""
        lines.append(f"{value_us / _US_IN_MS:12.3f} {level:.12f} {total:10d}{tail}")
    mean_us, deviation_us = _measure_spread_us(latency)
    half = 1 << (SUB_BUCKET_BITS - 1)
    lines += [
        f"#[Mean    = {mean_us / _US_IN_MS:12.3f}, StdDeviation   = {deviation_us / _US_IN_MS:12.3f}]",
        f"#[Max     = {latency.max_us / _US_IN_MS:12.3f}, Total count    = {latency.total:12d}]",
        f"#[Buckets = {BUCKETS // half - 1:12d}, SubBuckets     = {2 * half:12d}]",
    ]
    return "\n".join(lines) + "\n"


def _climb(percent: float) -> float:
    """Return the next percentile: the current halving of the distance to 100 % has `TICKS_PER_HALF` steps."""
    if percent >= 100:
        return percent
    halves = int(math.log(100 / (100 - percent)) / math.log(2)) + 1
    return percent + 100 / (TICKS_PER_HALF << halves)


def _measure_spread_us(latency: HistogramSnapshot) -> tuple[float, float]:
    """Compute mean and standard deviation from the midpoints of the buckets, as HdrHistogram does."""
    if not latency.buckets:
        return 0.0, 0.0
    middles = []
    for index in latency.buckets[0::2]:
        low, high = bucket_bounds_us(index)
        middles.append(low + (high - low + 1) // 2)
    pairs = list(zip(middles, latency.buckets[1::2], strict=True))
    mean = sum(middle * count for middle, count in pairs) / latency.total
    variance = sum((middle - mean) ** 2 * count for middle, count in pairs) / latency.total
    return mean, math.sqrt(variance)
