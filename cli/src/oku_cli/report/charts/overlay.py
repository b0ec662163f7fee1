"""Charts how often each value of several distributions occurred, over each other."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from oku_cli.report.charts.chart import Axis, Chart, Key, Series, Track, draw_area, draw_line
from oku_cli.report.charts.distributions import ShownDistribution
from oku_cli.report.charts.scale import (
    Scale,
    build_linear_scale,
    build_ticks,
    format_axis_latency,
)
from oku_core.accounting.histogram import bucket_bounds_us
from oku_core.tables.formatting import format_compact, format_latency

_RUNGS = 20
"""Steps of a decade."""
_FEW_DECADES = 4
_EPSILON = 1e-9


def build_overlay_chart(distributions: Sequence[ShownDistribution]) -> tuple[Chart, Track]:
    """Build the chart of how often each value of several distributions occurred, and its track.

    All share an axis, which is logarithmic: latencies are often a hundred times as long as latenesses.
    """
    rungs = [
        [_find_rung(max(bucket_bounds_us(index)[0], 1)) for index in each.histogram.buckets[0::2]]
        for each in distributions
    ]
    low, high = min(row[0] for row in rungs), max(row[-1] for row in rungs) + 1
    counts = [[0] * (high - low) for _ in distributions]
    for row, places, each in zip(counts, rungs, distributions, strict=True):
        for place, count in zip(places, each.histogram.buckets[1::2], strict=True):
            row[place - low] += count
    scale, steps = build_linear_scale(max(map(max, counts)))
    bounds_ms = [_measure_rung_ms(rung) for rung in range(low, high + 1)]
    outlines = [list(_outline(row, scale)) for row in counts]
    axis, numbers = Scale(low=bounds_ms[0], high=bounds_ms[-1], is_log=True), _list_rungs(low, high)
    chart = Chart(
        id="histogram",
        title="Histogram",
        note=f"How often each time occurred, in {_RUNGS} equal steps of each decade of a logarithmic scale.",
        description=" ".join(
            f"The highest step of {each.name} is at {format_latency(bounds_ms[row.index(max(row))])}."
            for each, row in zip(distributions, counts, strict=True)
        ),
        shapes=[
            shape
            for each, line in zip(distributions, outlines, strict=True)
            for shape in (
                draw_area(line, [(line[0][0], 0.0), (line[-1][0], 0.0)], each.id),
                draw_line(line, each.id),
            )
        ],
        x=Axis(title="time", ticks=build_ticks(axis, numbers, format_axis_latency)),
        y=Axis(title="requests", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key(each.id, each.name) for each in distributions],
        track="histogram",
        series=[
            Series(each.name, "", [float(count) for count in row])
            for each, row in zip(distributions, counts, strict=True)
        ],
    )
    heads = [f"{format_latency(start)} to {format_latency(stop)}" for start, stop in pairwise(bounds_ms)]
    width = 1000 / len(heads)
    return chart, Track(x=[round((place + 0.5) * width, 1) for place in range(len(heads))], heads=heads)


def _find_rung(value_us: int) -> int:
    return math.floor(_RUNGS * math.log10(value_us) + _EPSILON)


def _measure_rung_ms(rung: int) -> float:
    return float(10 ** (rung / _RUNGS) / 1000)


def _list_rungs(low: int, high: int) -> list[float]:
    """The round numbers on the axis, in ms: 1, 2 and 5 of each decade or, of many decades, 1."""
    digits = (1, 2, 5) if high - low <= _FEW_DECADES * _RUNGS else (1,)
    decades = range(low // _RUNGS, high // _RUNGS + 1)
    numbers = [digit * 10.0**decade / 1000 for decade in decades for digit in digits]
    return [number for number in numbers if _measure_rung_ms(low) <= number <= _measure_rung_ms(high)]


def _outline(counts: Sequence[int], scale: Scale) -> Iterator[tuple[float, float]]:
    """The upper edge of bars side by side."""
    for place, count in enumerate(counts):
        yield place / len(counts), scale.place(count)
        yield (place + 1) / len(counts), scale.place(count)
