"""Charts the latencies of the whole run: as a histogram, and by percentile as HdrHistogram plots them."""

import math
from dataclasses import dataclass

from oku_cli.formatting import format_count, format_latency, format_share
from oku_cli.report.charts.chart import Axis, Chart, Key, Series, Track, draw_area, draw_boxes, draw_line
from oku_cli.report.charts.scale import (
    AxisTick,
    Scale,
    build_linear_scale,
    build_log_scale,
    build_ticks,
    choose_step,
    format_axis_latency,
    format_compact,
)
from oku_cli.report.hgrm import build_percentile_rows
from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us, bucket_index

MOST_BARS = 90
_BODY = 0.999
"""The note tells of what is slower than this fraction: drawn, it would squeeze the rest into one bar."""
_MARGIN = 1.02
_LOG_FROM = 30
"""From this ratio of the longest latency to the median, the percentile chart has a logarithmic scale."""
_MOST_TICKS = 8
_FEW_NINES, _MANY_NINES = 3, 5.5
_EPSILON = 1e-9


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


def build_percentile_chart(latency: HistogramSnapshot) -> tuple[Chart, Track]:
    """Build the chart of latency by percentile, on an axis that stretches towards 100 %, and its track."""
    rows = list(build_percentile_rows(latency))
    reach = max(math.log10(latency.total), 1.0)
    median_us, highest_us = (max(1, value) for value in latency.quantiles_us([0.5, 1.0]))
    lowest_us = max(1, latency.min_us)
    if highest_us / median_us >= _LOG_FROM:
        scale, steps = build_log_scale(lowest_us / 1000, highest_us / 1000)
    else:
        scale, steps = build_linear_scale(highest_us / 1000)
    values_ms = [min(row.value_us, latency.max_us) / 1000 for row in rows]
    places = [_place(row.level, reach) for row in rows]
    points = [(at, scale.place(value_ms)) for at, value_ms in zip(places, values_ms, strict=True)]
    axis_word = "logarithmic" if scale.is_log else "linear"
    quantiles = [_find(latency, level) for level in (0.5, 0.9, 0.99, 0.999)]
    chart = Chart(
        id="percentiles",
        title="By percentile",
        note="The latency that this percentage of all answered requests did not exceed, on the percentile "
        f"axis of HdrHistogram, which stretches towards 100 %. The latency scale is {axis_word}.",
        description=f"p50 {quantiles[0]}, p90 {quantiles[1]}, p99 {quantiles[2]}, p99.9 {quantiles[3]}, "
        f"max {format_latency(latency.max_us / 1000)}.",
        shapes=[draw_area(points, [(x, 0.0) for x, _ in points], "share"), draw_line(points, "share")],
        x=Axis(title="percentile", ticks=_build_percentile_ticks(reach)),
        y=Axis(title="latency", ticks=build_ticks(scale, steps, format_axis_latency)),
        ends=[Key("share", "max", points[-1][1])],
        track="percentiles",
        series=[Series("latency", "ms", values_ms)],
    )
    heads = [_write_level(row.level) for row in rows]
    return chart, Track(x=[round(1000 * at, 1) for at in places], heads=heads)


def _place(level: float, reach: float) -> float:
    """Place `1 / (1 - level)` on a logarithmic axis that ends where a single request is left."""
    return min(1.0, -math.log10(1 - level) / reach) if level < 1 else 1.0


def _find(latency: HistogramSnapshot, level: float) -> str:
    return format_latency(latency.quantiles_us([level])[0] / 1000)


def _build_percentile_ticks(reach: float) -> list[AxisTick]:
    """Build a tick for each further nine; if they crowd, every other one above 99 % is left out."""
    crowded = reach > _MANY_NINES
    ticks = [AxisTick(0.0, write_percentile(0.0))]
    if reach < _FEW_NINES:
        ticks.append(AxisTick(_place(0.5, reach), write_percentile(0.5), is_minor=True))
    for nines in range(1, math.floor(reach + _EPSILON) + 1):
        level = 1 - 10.0**-nines
        if not crowded or nines % 2 == 1 or nines == 2:
            is_minor = crowded and nines == 2
            ticks.append(AxisTick(_place(level, reach), write_percentile(level), is_minor=is_minor))
    return ticks


def write_percentile(level: float) -> str:
    """Write a percentile with all its nines, never rounded up: `0 %`, `50 %`, `99.99 %`."""
    if level < 0.9:
        return f"{100 * level:g} %"
    nines = round(-math.log10(1 - level))
    return "90 %" if nines == 1 else f"99{'.' if nines > 2 else ''}{'9' * (nines - 2)} %"


def _write_level(level: float) -> str:
    """Write a percentile with enough digits that only 1.0 becomes 100 %: `93.75 %`."""
    digits = 3 - math.floor(math.log10(1 - level)) if level < 1 else 3
    return f"{100 * level:.{digits}g} %"


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
