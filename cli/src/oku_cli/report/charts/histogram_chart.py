"""Charts the latencies of the whole run as a histogram, or several distributions of it over each other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from oku_cli.report.charts.chart import Axis, Chart, Key, Series, Track, draw_area, draw_boxes, draw_line
from oku_cli.report.charts.scale import (
    AxisTick,
    Scale,
    build_linear_scale,
    build_ticks,
    choose_step,
    format_axis_latency,
)
from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index
from oku_core.summary.summary import Summary
from oku_core.tables.formatting import format_compact, format_count, format_latency, format_share
from oku_core.tables.time_tables import TIMES

MOST_BARS = 90
_BODY = 0.999
"""The note lists the slower rest beyond this fraction: drawn, it would squeeze all else into one bar."""
_MARGIN = 1.02
_MOST_TICKS = 8
_RUNGS = 20
"""Steps of a decade."""
_FEW_DECADES = 4
_EPSILON = 1e-9


@dataclass(frozen=True)
class ShownDistribution:
    """A distribution of a run.

    Attributes:
        name: the distributed quantity: `latency`, `response time` or `lateness`.
        requests: which requests it is of: `answered requests`.
        histogram: the distribution; not empty.
    """

    name: str
    requests: str
    histogram: HistogramSnapshot

    @property
    def id(self) -> str:
        """Its name in ids and CSS classes."""
        return self.name.replace(" ", "-")


def list_shown_distributions(summary: Summary) -> list[ShownDistribution]:
    """List the distributions of a run that are not empty, its latencies first."""
    return [
        ShownDistribution(time.label, time.counted, histogram)
        for time in TIMES
        if (histogram := time.decode(summary)).total
    ]


@dataclass(frozen=True)
class Bars:
    """Bars of equal width `step_us` from `low_us` upwards; `beyond` latencies lie above the last one."""

    low_us: int
    step_us: int
    counts: list[int]
    beyond: int

    @property
    def high_us(self) -> int:
        """The upper end of the last bar."""
        return self.low_us + self.step_us * len(self.counts)


def build_chart_bars(latency: HistogramSnapshot) -> Bars:
    """Sort all but the slowest thousandth into at most about `MOST_BARS` bars of a round width.

    A bucket counts towards the bar in which it begins; bars are wide enough to hide this.
    """
    (body_us,) = latency.quantiles_us([_BODY])
    body_us = min(round(body_us * _MARGIN) + 1, latency.max_us)
    low, high = bucket_bounds_us(bucket_index(body_us))
    step_us = math.ceil(choose_step(max(1, (body_us - latency.min_us) / (MOST_BARS - 2), 2 * (high - low))))
    low_us = latency.min_us // step_us * step_us
    counts = [0] * (max(0, body_us - low_us) // step_us + 1)
    beyond = 0
    for index, count in zip(latency.buckets[0::2], latency.buckets[1::2], strict=True):
        place = (max(bucket_bounds_us(index)[0], latency.min_us) - low_us) // step_us
        if place < len(counts):
            counts[place] += count
        else:
            beyond += count
    return Bars(low_us, step_us, counts, beyond)


def build_histogram_chart(latency: HistogramSnapshot) -> tuple[Chart, Track]:
    """Build the chart of how often each latency occurred, on a linear scale, and its track."""
    bars = build_chart_bars(latency)
    scale, steps = build_linear_scale(max(bars.counts))
    width = 1 / len(bars.counts)
    boxes = [
        (place * width, (place + 1) * width, 0.0, scale.place(count))
        for place, count in enumerate(bars.counts)
        if count
    ]
    heads = [
        f"{format_latency((bars.low_us + place * bars.step_us) / 1000)} + up to "
        f"{format_latency(bars.step_us / 1000)}"
        for place in range(len(bars.counts))
    ]
    beyond = (
        f" Not drawn: {format_share(bars.beyond, latency.total)} above "
        f"{format_latency(bars.high_us / 1000)}, up to {format_latency(latency.max_us / 1000)}."
        if bars.beyond
        else ""
    )
    mode = max(range(len(bars.counts)), key=bars.counts.__getitem__)
    chart = Chart(
        id="histogram",
        title="Histogram",
        note=f"All {format_count(latency.total)} answered requests, in bars of "
        f"{format_latency(bars.step_us / 1000)}.{beyond}",
        description=f"The highest bar is at {format_latency((bars.low_us + mode * bars.step_us) / 1000)}.",
        shapes=[draw_boxes(boxes, "bars")],
        x=Axis(title="latency", ticks=_build_latency_ticks(bars)),
        y=Axis(title="requests", ticks=build_ticks(scale, steps, format_compact)),
        track="histogram",
        series=[Series("requests", "", [float(count) for count in bars.counts])],
    )
    return chart, Track(
        x=[round(1000 * (place + 0.5) * width, 1) for place in range(len(heads))], heads=heads
    )


def _build_latency_ticks(bars: Bars) -> list[AxisTick]:
    step_us = choose_step(max(bars.step_us, (bars.high_us - bars.low_us) / _MOST_TICKS))
    first = math.ceil(bars.low_us / step_us)
    last = math.floor(bars.high_us / step_us)
    scale = Scale(low=bars.low_us, high=bars.high_us)
    return [
        AxisTick(
            scale.place(number * step_us),
            format_axis_latency(float(f"{number * step_us / 1000:.9g}")),
            is_minor=bool(number % 2),
        )
        for number in range(first, last + 1)
    ]


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
