"""Charts distributions of the whole run by percentile, as HdrHistogram plots them."""

import math
from collections.abc import Sequence

from oku_cli.report.charts.chart import Axis, Chart, Key, Series, Track, draw_area, draw_line
from oku_cli.report.charts.histogram_chart import ShownDistribution
from oku_cli.report.charts.scale import (
    AxisTick,
    Scale,
    build_linear_scale,
    build_log_scale,
    build_ticks,
    format_axis_latency,
)
from oku_cli.report.hgrm import build_percentile_rows
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.tables.formatting import format_latency

_LOG_FROM = 30
"""From this ratio of the longest time to the lowest median, the scale is logarithmic."""
_FEW_NINES, _MANY_NINES = 3, 5.5
_EPSILON = 1e-9


def build_percentile_chart(
    distributions: Sequence[ShownDistribution], *, id_: str = "percentiles", title: str = "By percentile"
) -> tuple[Chart, Track]:
    """Build the chart of values by percentile, on an axis that stretches towards 100 %, and its track.

    Args:
        distributions: at least one; a line for each is drawn, through the percentiles of the first.
        id_: the id of the chart and of its track.
        title: what it shows.
    """
    first = distributions[0].histogram
    levels = [row.level for row in build_percentile_rows(first)]
    reach = max(math.log10(first.total), 1.0)
    scale, steps = _build_percentile_scale([distribution.histogram for distribution in distributions])
    places = [_place(level, reach) for level in levels]
    axis_word = "logarithmic" if scale.is_log else "linear"
    is_single = len(distributions) == 1
    value = distributions[0].name if is_single else "time"
    shapes, series, ends = [], [], []
    for distribution in distributions:
        values_ms = _list_values_ms(distribution.histogram, levels)
        points = [(at, scale.place(value_ms)) for at, value_ms in zip(places, values_ms, strict=True)]
        shapes.append(draw_line(points, distribution.id))
        if is_single:
            shapes.insert(0, draw_area(points, [(x, 0.0) for x, _ in points], distribution.id))
            ends.append(Key("share", "max", points[-1][1]))
        series.append(Series(distribution.name, "ms", values_ms))
    chart = Chart(
        id=id_,
        title=title,
        note=f"The {value} that this percentage of {distributions[0].requests} did not exceed, on the "
        f"percentile axis of HdrHistogram, which stretches towards 100 %. The {value} scale is {axis_word}.",
        description=" ".join(_describe(distribution) for distribution in distributions),
        shapes=shapes,
        x=Axis(title="percentile", ticks=_build_percentile_ticks(reach)),
        y=Axis(title=value, ticks=build_ticks(scale, steps, format_axis_latency)),
        legend=[] if is_single else [Key(each.id, each.name) for each in distributions],
        ends=ends,
        track=id_,
        series=series,
    )
    heads = [_write_level(level) for level in levels]
    return chart, Track(x=[round(1000 * at, 1) for at in places], heads=heads)


def _build_percentile_scale(histograms: Sequence[HistogramSnapshot]) -> tuple[Scale, list[float]]:
    """Build a linear scale or, if values are far apart, a logarithmic one."""
    medians_us = [max(1, *histogram.quantiles_us([0.5])) for histogram in histograms]
    highest_us = max(1, *(histogram.max_us for histogram in histograms))
    if highest_us / min(medians_us) < _LOG_FROM:
        return build_linear_scale(highest_us / 1000)
    lowest_us = max(1, min(histogram.min_us for histogram in histograms))
    return build_log_scale(lowest_us / 1000, highest_us / 1000)


def _list_values_ms(histogram: HistogramSnapshot, levels: Sequence[float]) -> list[float]:
    return [value_us / 1000 for value_us in histogram.quantiles_us(levels)]


def _describe(distribution: ShownDistribution) -> str:
    p50, p90, p99, p99_9 = (_find(distribution.histogram, level) for level in (0.5, 0.9, 0.99, 0.999))
    return (
        f"{distribution.name}: p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p99_9}, "
        f"max {format_latency(distribution.histogram.max_us / 1000)}."
    )


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
