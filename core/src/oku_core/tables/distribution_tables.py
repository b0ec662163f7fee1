"""Builds the table of a distribution: what a user of the target waits for, as a dozen bars or so.

The bars have round bounds and equal widths on a logarithmic scale, or on a linear one when all latencies are
close together. They cover the middle 99 %; the first and the last reach to the minimum and the maximum, so
that one straggler does not squeeze the rest into a single bar.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from oku_core.accounting.histogram import Histogram, HistogramSnapshot, bucket_bounds_us, bucket_index
from oku_core.tables.formatting import choose_digits, format_latency
from oku_core.tables.table import Column, Quantity, Rank, Role, Table, Value, build_bar, build_table

MOST_BARS = 14
"""More bars are no easier to read, and the end screen has to fit on one screen."""
_ENOUGH_BARS = 5
"""A few requests in many bars would leave most of them empty."""
_BODY = 0.005, 0.995
_DECADES = 10
_LADDERS = (
    (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.6, 2.5, 4, 6.3),
    (1, 2, 5),
    (1, 3),
    (1,),
)
"""Round numbers of a decade in even ratios, finest first: R20, R10 and R5 of ISO 3, then coarser ones."""
_COLUMNS = (
    Column(key="bounds", head="", role=Role.TEXT),
    Column(key="bar", head="", role=Role.BAR, rank=Rank.SPARE),
    Column(key="requests", head="requests", quantity=Quantity.COUNT),
    Column(key="share", head="share", quantity=Quantity.SHARE),
)
_CLOSE = 2
"""Latencies within this factor of each other are shown on a linear scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBar:
    """Counts the latencies between two bounds in µs; the last bar includes its upper bound."""

    low_us: int
    high_us: int
    count: int


def build_bars(latency: HistogramSnapshot) -> list[HistogramBar]:
    """Build at most `MOST_BARS` bars, ascending, that hold every latency; none at the ends is empty.

    A bucket that contains a bound counts as a whole below it: an error of 1 part in 1024 of the bound, as
    everywhere in this histogram.
    """
    if not latency.total:
        return []
    edges = build_edges(latency)
    counts = [0] * (len(edges) + 1)
    for index, count in zip(latency.buckets[0::2], latency.buckets[1::2], strict=True):
        counts[bisect_right(edges, max(bucket_bounds_us(index)[0], latency.min_us))] += count
    filled = [position for position, count in enumerate(counts) if count]
    counts = counts[filled[0] : filled[-1] + 1]
    bounds = [latency.min_us, *edges[filled[0] : filled[-1]], latency.max_us]
    return [
        HistogramBar(low_us=low, high_us=high, count=count)
        for (low, high), count in zip(pairwise(bounds), counts, strict=True)
    ]


def build_edges(latency: HistogramSnapshot) -> list[int]:
    """Choose the round bounds in µs between the bars: ascending, at least one, as many as fit."""
    histogram = Histogram()
    histogram.add(latency)
    low, high = (max(1, histogram.quantile_us(quantile)) for quantile in _BODY)
    most_bars = min(MOST_BARS, max(_ENOUGH_BARS, latency.total))
    edges: list[int] = []
    for edges in _propose_edges(low, high):
        if len(edges) < most_bars:
            break
    return edges


def build_distribution(latency: HistogramSnapshot) -> Table:
    """Build the table of the bars with their bounds, counts and shares; without rows if there are none."""
    bars = build_bars(latency)
    bounds_ms = [*(bar.low_us / 1000 for bar in bars), *(bar.high_us / 1000 for bar in bars[-1:])]
    digits = choose_digits(bounds_ms)
    labels = [format_latency(bound_ms, digits) for bound_ms in bounds_ms]
    lows, highs = (max(map(len, texts), default=0) for texts in (labels[:-1], labels[1:]))
    top = max((bar.count for bar in bars), default=0)
    rows: Iterator[list[Value]] = (
        [
            f"{low.rjust(lows)} to {high.rjust(highs)}",
            build_bar([("requests", bar.count)], top),
            bar.count,
            bar.count / latency.total,
        ]
        for bar, (low, high) in zip(bars, pairwise(labels), strict=True)
    )
    return build_table("distribution", "", _COLUMNS, rows)


def _propose_edges(low: int, high: int) -> Iterator[list[int]]:
    """Yield lists of bounds, finest first, from the last one at or below `low` to the first above `high`."""
    if high < low * _CLOSE:
        first, last = bucket_bounds_us(bucket_index(low))
        for step in _climb((1, 2, 5)):
            if step >= 2 * (last - first):  # a finer step would show the buckets instead of the latencies
                yield list(range(low // step * step, high + step + 1, step))
    for ladder in _LADDERS:
        yield _cut(_climb(ladder), low, high)


def _climb(ladder: Sequence[float]) -> list[int]:
    return sorted({round(step * 10**decade) for decade in range(_DECADES) for step in ladder})


def _cut(rungs: Sequence[int], low: int, high: int) -> list[int]:
    return list(rungs[bisect_right(rungs, low) - 1 : bisect_right(rungs, high) + 1])
