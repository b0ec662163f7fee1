"""Charts quantiles over time: those of latency and, with a rate, those of response time and lateness."""

from collections.abc import Sequence

from oku_cli.report.charts.chart import Axis, Chart, Key, draw_line
from oku_cli.report.charts.over_time import TRACK, RunOverTime, collect, describe, trace_values
from oku_cli.report.charts.scale import build_log_scale, build_ticks, format_axis_latency
from oku_core.accounting.measured_time import LIVE_TIMES
from oku_core.results.sample import QUANTILES
from oku_core.tables.formatting import format_latency

QUANTILE_LABELS = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p99_9_ms": "p99.9", "max_ms": "max"}
_LEAST_LATENCY_MS = 0.001
_COMPARED = {time.label.replace(" ", "-"): f"{time.figure_prefix}p99_ms" for time in LIVE_TIMES}
"""The figure of each distribution that the chart of all three draws, by CSS class."""
_READ_OUT = ("p50_ms", "p99_ms", "max_ms")


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
        series=[collect(QUANTILE_LABELS[name], "ms", row) for name, row in reversed(values.items())],
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
            collect(
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
