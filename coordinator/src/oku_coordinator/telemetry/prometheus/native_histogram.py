"""Converts the histograms of an account to native histograms of Prometheus, with exponential buckets.

They use schema 5: each bucket is 2**(1/32) times as wide as the previous one, 2.2 %. A bucket of ours that
crosses a bound counts where its smallest value belongs. Up to 2,047 µs each holds one value and crosses none;
longer ones are narrower than 1 part in 1024. So a time `t` counted in the bucket from `a` to `b` satisfies `a
< t < b * (1 + 1/1024)`.
"""

import math
from collections.abc import Iterable, Sequence

from prometheus_client.samples import BucketSpan, NativeHistogram

from oku_core.accounting.histogram import HIGHEST_US, Histogram, bucket_index

SCHEMA = 5
"""2**5 buckets between a time and twice that time."""
ZERO_THRESHOLD_S = 2.0**-20
"""A time up to this, 0.95 µs, is 0 µs in a `Histogram`; it is a bound of every schema."""
_LOWEST = -20 << SCHEMA
"""The bucket whose upper bound is the threshold; the following ones count."""
_HIGHEST = math.ceil(math.log2(HIGHEST_US / 1_000_000) * (1 << SCHEMA))


def find_cuts(bounds_s: Iterable[float]) -> list[int]:
    """The first bucket of a `Histogram` above each of these upper bounds in seconds."""
    return [bucket_index(min(math.floor(bound_s * 1_000_000), HIGHEST_US)) + 1 for bound_s in bounds_s]


_CUTS = [0, *find_cuts(2.0 ** (index / (1 << SCHEMA)) for index in range(_LOWEST, _HIGHEST + 1))]


def build_native_histogram(histograms: Iterable[Histogram]) -> NativeHistogram:
    """Merge histograms of times in µs into a native histogram of seconds."""
    merged = list(histograms)
    zeros, *counts = map(sum, zip(*(each.count_between(_CUTS) for each in merged), strict=True))
    spans, deltas = _build_buckets(counts)
    return NativeHistogram(
        count_value=sum(each.total for each in merged),
        sum_value=sum(each.sum_us for each in merged) / 1_000_000,
        schema=SCHEMA,
        zero_threshold=ZERO_THRESHOLD_S,
        zero_count=zeros,
        pos_spans=spans,
        pos_deltas=deltas,
    )


def _build_buckets(counts: Sequence[int]) -> tuple[list[BucketSpan], list[int]]:
    """Spans of adjacent buckets, and the difference of each bucket from the previous one."""
    spans: list[BucketSpan] = []
    deltas: list[int] = []
    following, before = 0, 0
    for index, count in enumerate(counts, _LOWEST + 1):
        if not count:
            continue
        if spans and index == following:
            spans[-1] = BucketSpan(spans[-1].offset, spans[-1].length + 1)
        else:
            spans.append(BucketSpan(index - following, 1))
        deltas.append(count - before)
        following, before = index + 1, count
    return spans, deltas
