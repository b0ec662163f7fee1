"""Charts over time how long requests took: quantiles of each time, and a heatmap of the latencies."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from oku_cli.report.charts.chart import Axis, Chart, Key, Series, draw_boxes, draw_line
from oku_cli.report.charts.over_time import TRACK, RunOverTime, describe, round_series, trace_values
from oku_cli.report.charts.scale import AxisTick, build_log_scale, build_ticks, format_axis_latency
from oku_cli.report.charts.timeline import build_columns
from oku_cli.report.markup import Html
from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.results.lines import BOUNDS_MS
from oku_core.results.sample import QUANTILES, Sample
from oku_core.tables.formatting import format_count, format_latency

QUANTILE_LABELS = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p99_9_ms": "p99.9", "max_ms": "max"}
_LEAST_LATENCY_MS = 0.001
_COMPARED = {time.label.replace(" ", "-"): f"{time.figure_prefix}p99_ms" for time in LIVE_TIMES}
"""The figure of each distribution that the chart of all three draws, by CSS class."""
_READ_OUT = ("p50_ms", "p99_ms", "max_ms")
LEVELS = 8
"""The number of shades; from one to the next, the request rate grows by the same factor."""
MOST_STEPS = 160
_MANY_ROWS = 34
"""With more rows, only whole decades have ticks."""
_BOX = tuple[float, float, float, float]


def build_quantile_chart(over_time: RunOverTime) -> Chart | None:
    """Build the chart of latency quantiles; None if no request was answered."""
    values = {name: [getattr(sample, name) for sample in over_time.columns] for name in QUANTILES}
    known = [max(value, _LEAST_LATENCY_MS) for row in values.values() for value in row if value is not None]
    if not known:
        return None
    scale, steps = build_log_scale(min(known), max(known))
    traced = {name.removesuffix("_ms"): trace_values(over_time, row, scale) for name, row in values.items()}
    ends = [
        Key(class_, QUANTILE_LABELS[f"{class_}_ms"], lines[-1][-1][1])
        for class_, lines in traced.items()
        if lines
    ]
    p50, p99 = ([value for value in values[name] if value is not None] for name in ("p50_ms", "p99_ms"))
    return Chart(
        id="quantiles",
        title="Latency",
        note=f"Quantiles of all answered requests, merged over all workers; {over_time.grain}. "
        "The scale is logarithmic.",
        description=f"{describe('The median', p50, format_latency)} {describe('p99', p99, format_latency)}",
        shapes=[draw_line(line, class_) for class_, lines in traced.items() for line in lines],
        x=over_time.axis,
        y=Axis(title="latency", ticks=build_ticks(scale, steps, format_axis_latency)),
        ends=ends,
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[round_series(QUANTILE_LABELS[name], "ms", row) for name, row in reversed(values.items())],
    )


def build_due_chart(over_time: RunOverTime) -> Chart | None:
    """Build the chart of latency, response time and lateness; None if nothing had a due time."""
    values = {class_: _list_values(over_time, name) for class_, name in _COMPARED.items()}
    known = [max(value, _LEAST_LATENCY_MS) for row in values.values() for value in row if value is not None]
    lateness = [value for value in values["lateness"] if value is not None]
    if not lateness:
        return None
    scale, steps = build_log_scale(min(known), max(known))
    return Chart(
        id="due",
        title="Latency, response time and lateness",
        note="p99 of each: from sent to the end, from due to the end, from due to sent. Where response "
        "time and latency part, requests waited before they were sent. The scale is logarithmic.",
        description=describe("p99 of lateness", lateness, format_latency),
        shapes=[
            draw_line(line, class_)
            for class_, row in reversed(values.items())
            for line in trace_values(over_time, row, scale)
        ],
        x=over_time.axis,
        y=Axis(title="p99", ticks=build_ticks(scale, steps, format_axis_latency)),
        legend=[Key(class_, class_.replace("-", " ")) for class_ in values],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[
            round_series(
                f"{time.label} {QUANTILE_LABELS[name]}",
                "ms",
                _list_values(over_time, time.figure_prefix + name),
            )
            for time in LIVE_TIMES
            for name in _READ_OUT
        ],
    )


def _list_values(over_time: RunOverTime, name: str) -> Sequence[float | None]:
    return [getattr(sample, name) for sample in over_time.columns]


def build_heatmap(samples: Sequence[Sample], over_time: RunOverTime) -> Chart | None:
    """Build the heatmap; None if no request was answered."""
    steps = build_columns(samples, over_time.timeline, MOST_STEPS)
    grid = [count_by_row(_read(sample)) for sample in steps]
    rows = sorted({row for counts in grid for row in counts})
    if not rows:
        return None
    low, high = rows[0], rows[-1] + 1
    # The same rate must have the same shade, however long a time step is.
    densities = [
        {row: count / step.seconds for row, count in counts.items()}
        for step, counts in zip(steps, grid, strict=True)
    ]
    top = max(density for counts in densities for density in counts.values())
    least = min(density for counts in densities for density in counts.values())
    boxes: list[list[_BOX]] = [[] for _ in range(LEVELS)]
    for step, counts in zip(steps, densities, strict=True):
        left = over_time.timeline.place(step.at - step.seconds)
        right = over_time.timeline.place(step.at)
        for level, first, last in _join_rows(counts, least, top):
            boxes[level].append((left, right, (first - low) / (high - low), (last + 1 - low) / (high - low)))
    most = max(range(len(rows)), key=lambda place: sum(counts.get(rows[place], 0) for counts in grid))
    span = f"{_write_low(rows[most])} to {format_latency(BOUNDS_MS[rows[most]])}"
    return Chart(
        id="heatmap",
        title="Latency heatmap",
        note="Each column is a time step; the stronger the colour, the more requests had that latency. "
        "Shades are logarithmic, so that a few slow requests show beside very many fast ones.",
        description=f"Most requests took {span}; the slowest up to {format_latency(BOUNDS_MS[rows[-1]])}.",
        shapes=_draw(boxes),
        x=over_time.axis,
        y=Axis(title="latency", ticks=list(_build_row_ticks(low, high))),
        legend=[Key(f"heat-{level}", "") for level in range(LEVELS - 1)]
        + [Key(f"heat-{LEVELS - 1}", f"few to {format_count(math.ceil(top))} per second")],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[
            Series("answered", "", [float(_read(sample).total) for sample in over_time.columns]),
            Series("p50", "ms", [sample.p50_ms for sample in over_time.columns]),
            Series("p99", "ms", [sample.p99_ms for sample in over_time.columns]),
        ],
    )


def _read(sample: Sample) -> HistogramSnapshot:
    return sample.histogram(Time.LATENCY)


def count_by_row(latency: HistogramSnapshot) -> dict[int, int]:
    """Count requests by row: the index in `BOUNDS_MS` of the first bound not below their bucket."""
    counts: dict[int, int] = {}
    for index, count in zip(latency.buckets[0::2], latency.buckets[1::2], strict=True):
        row = bisect_left(BOUNDS_MS, bucket_bounds_us(index)[0] / 1000)
        counts[row] = counts.get(row, 0) + count
    return counts


def choose_level(density: float, least: float, top: float) -> int:
    """Choose the shade of a request rate: 0 for the lowest rate, `LEVELS - 1` for the highest."""
    if top <= least:
        return LEVELS - 1
    share = math.log(density / least) / math.log(top / least)
    return min(LEVELS - 1, int(share * LEVELS))


def _join_rows(counts: dict[int, float], least: float, top: float) -> Iterator[tuple[int, int, int]]:
    """Yield the level, the first and the last row of each stretch of one shade in a column."""
    stretch: tuple[int, int, int] | None = None
    for row in sorted(counts):
        level = choose_level(counts[row], least, top)
        if stretch and stretch[0] == level and stretch[2] == row - 1:
            stretch = level, stretch[1], row
        else:
            if stretch:
                yield stretch
            stretch = level, row, row
    if stretch:
        yield stretch


def _draw(boxes: Sequence[Sequence[_BOX]]) -> list[Html]:
    return [draw_boxes(cells, f"heat-{level}") for level, cells in enumerate(boxes) if cells]


def _build_row_ticks(low: int, high: int) -> Iterator[AxisTick]:
    """Build ticks at 1, 2 and 5 of each decade, or at 1 if rows are many; a bound is the top of its row."""
    digits = (1, 2, 5) if high - low <= _MANY_ROWS else (1,)
    for row in range(low - 1, high):
        if row < 0:
            continue
        digit = BOUNDS_MS[row] / 10 ** math.floor(math.log10(BOUNDS_MS[row]) + 1e-9)
        if any(math.isclose(digit, wanted) for wanted in digits):
            yield AxisTick((row + 1 - low) / (high - low), format_axis_latency(BOUNDS_MS[row]))


def _write_low(row: int) -> str:
    return format_latency(BOUNDS_MS[row - 1]) if row else "0"
