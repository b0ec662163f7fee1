"""Charts the latencies of the whole run as a histogram."""

import math
from dataclasses import dataclass

from oku_cli.report.charts.chart import Axis, Chart, Series, Track, draw_boxes
from oku_cli.report.charts.scale import (
    AxisTick,
    Scale,
    build_linear_scale,
    build_ticks,
    choose_step,
    format_axis_latency,
)
from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index
from oku_core.tables.formatting import format_compact, format_count, format_latency, format_share

MOST_BARS = 90
_BODY = 0.999
"""The note tells of what is slower than this fraction: drawn, it would squeeze the rest into one bar."""
_MARGIN = 1.02
_MOST_TICKS = 8


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


def build_bars(latency: HistogramSnapshot) -> Bars:
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
    bars = build_bars(latency)
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
