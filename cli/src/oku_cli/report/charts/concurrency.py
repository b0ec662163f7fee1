"""Charts the requests in flight over time, and how many of them there should be, or may be."""

from oku_cli.report.charts.chart import Axis, Chart, Key, draw_area, draw_line
from oku_cli.report.charts.over_time import TRACK, RunOverTime, collect, describe, trace_values
from oku_cli.report.charts.scale import build_linear_scale, build_ticks
from oku_core.tables.formatting import format_compact, format_count

_NEAR = 0.5
"""The most that are allowed are drawn if so large a share of them was in flight."""


def build_in_flight_chart(over_time: RunOverTime) -> Chart:
    """Build the chart of requests in flight; workers and event loop lag can be read out of it.

    Behind them is what stages ask for. With a rate, the most that are allowed are a line, if it is near.
    """
    in_flight = [sample.in_flight for sample in over_time.columns]
    seen = [number for number in in_flight if number is not None]
    lags_ms = [None if sample.lag_s is None else 1000 * sample.lag_s for sample in over_time.columns]
    levels, planned = over_time.trace_plan(of_rate=False), over_time.list_planned(of_rate=False)
    limits = _list_limits(over_time)
    highest = max((level for line in levels for _, level in line), default=0.0)
    scale, steps = build_linear_scale(max([highest, *seen, *filter(None, limits)]))
    lines = trace_values(over_time, in_flight, scale)
    plans = [[(x, scale.place(level)) for x, level in line] for line in levels]
    legend = [Key("plan", "plan")] if plans else [Key("limit", "most allowed")] if limits else []
    return Chart(
        id="load",
        title="In flight",
        note="Requests sent but not yet answered, over all workers.",
        description=describe("The number in flight", seen, lambda number: format_count(round(number))),
        shapes=[
            *(draw_area(line, [(x, 0.0) for x, _ in line], "plan") for line in plans),
            *(draw_area(line, [(x, 0.0) for x, _ in line], "in-flight") for line in lines),
            *(draw_line(line, "plan") for line in plans),
            *(draw_line(line, "limit") for line in trace_values(over_time, limits, scale)),
            *(draw_line(line, "in-flight") for line in lines),
        ],
        x=over_time.axis,
        y=Axis(title="requests", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key("in-flight", "in flight"), *legend] if legend else [],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[
            collect("in flight", "", in_flight),
            *([collect("plan", "", planned)] if planned else []),
            *([collect("most allowed", "", limits)] if limits else []),
            collect("workers", "", [sample.workers for sample in over_time.columns]),
            collect("worst event loop lag", "ms", lags_ms),
        ],
    )


def _list_limits(over_time: RunOverTime) -> list[float | None]:
    """How many the workers of each column may have in flight; none if that was never near."""
    plan = over_time.plan
    if plan is None or not plan.spec.is_open:
        return []
    limits = [
        float(plan.spec.find_window(sample.workers) * sample.workers) if sample.workers else None
        for sample in over_time.columns
    ]
    is_near = any(
        limit is not None and (sample.in_flight or 0.0) >= _NEAR * limit
        for limit, sample in zip(limits, over_time.columns, strict=True)
    )
    return limits if is_near else []
