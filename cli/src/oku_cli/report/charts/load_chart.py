"""Charts the load over time: the rate of requests by outcome, before the plan, and the requests in flight."""

from collections.abc import Sequence
from itertools import accumulate

from oku_cli.report.charts.chart import Axis, Chart, Key, draw_area, draw_line
from oku_cli.report.charts.over_time import TRACK, RunOverTime, describe, round_series, trace_values
from oku_cli.report.charts.planned_load import Plan
from oku_cli.report.charts.scale import Scale, build_linear_scale, build_ticks
from oku_cli.report.charts.timeline import Timeline
from oku_cli.report.markup import Html
from oku_core.accounting.outcome import OK, OUTCOMES
from oku_core.results.sample import Sample
from oku_core.tables.formatting import format_compact, format_count, format_outcome, format_rate

_NOTE = "Requests that ended per second, by outcome"
_NOTE_SENT = "Requests that ended or were given up per second, by outcome, and those that were sent"
_LEAST_SHARE = 0.1
"""A column in which requests were due for a smaller share of the time does not show the rate."""
_NEAR = 0.5
"""The most that are allowed are drawn if so large a share of them was in flight."""


def build_rate_chart(over_time: RunOverTime) -> Chart:
    """Build the chart of requests per second, stacked by outcome; with a rate, the plan lies behind them."""
    present = _find_present(over_time.columns)
    rates = [_divide(sample) for sample in over_time.columns]
    totals = [sum(rate) for rate in rates]
    levels, planned = over_time.trace_plan(of_rate=True), over_time.list_planned(of_rate=True)
    sent, limits = _measure_sent(over_time), _list_limits(over_time)
    highest = max((level for line in levels for _, level in line), default=0.0)
    scale, steps = build_linear_scale(max([highest, *totals, *filter(None, sent), *limits]))
    lines = [[(x, scale.place(level)) for x, level in line] for line in levels]
    extra: list[tuple[str, str, Sequence[float | None]]] = [
        ("sent", "sent", sent),
        ("plan", "plan", planned),
        ("limit", "most allowed", limits),
    ]
    return Chart(
        id="rate",
        title="Rate",
        note=f"{_NOTE_SENT if sent else _NOTE}; {over_time.grain}.",
        description=describe("The rate", totals, format_rate),
        shapes=[
            *(draw_area(line, [(x, 0.0) for x, _ in line], "plan") for line in lines),
            *_stack(over_time, present, rates, scale),
            *(draw_line(line, "total") for line in trace_values(over_time, totals, scale)),
            *(draw_line(line, "plan") for line in lines),
            *(draw_line(line, "sent") for line in trace_values(over_time, sent, scale)),
            *(draw_line(line, "limit") for line in trace_values(over_time, limits, scale)),
        ],
        x=over_time.axis,
        y=Axis(title="requests per second", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key(OUTCOMES[number], format_outcome(OUTCOMES[number])) for number in present]
        + [Key(class_, label) for class_, label, values in extra if values],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[round_series(format_outcome(OUTCOMES[n]), "/s", [rate[n] for rate in rates]) for n in present]
        + [round_series(label, "/s", values) for _, label, values in extra if values],
    )


def build_trouble_chart(over_time: RunOverTime) -> Chart | None:
    """Build the same chart without the requests that were `ok`; None if all were."""
    present = [number for number in _find_present(over_time.columns) if number != OK]
    if not present:
        return None
    rates = [_divide(sample) for sample in over_time.columns]
    totals = [sum(rate) - rate[OK] for rate in rates]
    scale, steps = build_linear_scale(max(totals))
    return Chart(
        id="trouble",
        title="Requests that were not ok",
        note="The same chart without the requests that were ok, on its own scale.",
        description=describe("The rate of requests that were not ok", totals, format_rate),
        shapes=_stack(over_time, present, rates, scale),
        x=over_time.axis,
        y=Axis(title="requests per second", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key(OUTCOMES[number], format_outcome(OUTCOMES[number])) for number in present],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        phases=over_time.phases,
        track=TRACK,
        series=[
            round_series(format_outcome(OUTCOMES[n]), "/s", [rate[n] for rate in rates]) for n in present
        ],
    )


def _find_present(columns: Sequence[Sample]) -> list[int]:
    """Return the indices of the outcomes that occurred; `ok` is always among them."""
    return [n for n in range(len(OUTCOMES)) if n == OK or any(sample.outcomes[n] for sample in columns)]


def _divide(sample: Sample) -> list[float]:
    return [count / sample.seconds for count in sample.outcomes]


def _stack(
    over_time: RunOverTime, present: Sequence[int], rates: Sequence[Sequence[float]], scale: Scale
) -> list[Html]:
    """Stack an area for each outcome, the first one at the bottom."""
    tops = [[0.0, *accumulate(rate[number] for number in present)] for rate in rates]
    shapes = []
    for layer, number in enumerate(present):
        lowers = over_time.trace(lambda index, layer=layer: scale.place(tops[index][layer]))  # type: ignore[misc]
        uppers = over_time.trace(lambda index, layer=layer: scale.place(tops[index][layer + 1]))  # type: ignore[misc]
        shapes += [
            draw_area(upper, lower, OUTCOMES[number]) for upper, lower in zip(uppers, lowers, strict=True)
        ]
    return shapes


def _list_limits(over_time: RunOverTime) -> list[float]:
    """The rate above which a closed run may not go, for each column; nothing if it has none."""
    most = None if over_time.plan is None else over_time.plan.spec.max_rate
    return [] if most is None else [float(most.per_second)] * len(over_time.columns)


def _measure_sent(over_time: RunOverTime) -> list[float | None]:
    """The requests sent per second in which requests were due, for each column; nothing without a rate."""
    plan = over_time.plan
    if plan is None or not plan.spec.is_open:
        return []
    return [_divide_sent(sample, over_time.timeline, plan) for sample in over_time.columns]


def _divide_sent(sample: Sample, timeline: Timeline, plan: Plan) -> float | None:
    due_s = plan.measure_due_s(timeline, sample.at - sample.seconds, sample.at)
    sends_late = plan.spec.late.duration_s is None
    if sends_late and due_s < sample.seconds / 2:  # requests are sent after the end, too
        return sample.requests_sent / sample.seconds
    return sample.requests_sent / due_s if due_s >= _LEAST_SHARE * sample.seconds else None


def build_in_flight_chart(over_time: RunOverTime) -> Chart:
    """Build the chart of requests in flight; workers and event loop lag can be read out of it.

    The load that stages ask for is drawn behind them. With a rate, the limit is a line, if it is near.
    """
    in_flight = [sample.in_flight for sample in over_time.columns]
    seen = [number for number in in_flight if number is not None]
    lags_ms = [None if sample.lag_s is None else 1000 * sample.lag_s for sample in over_time.columns]
    levels, planned = over_time.trace_plan(of_rate=False), over_time.list_planned(of_rate=False)
    limits = _list_most_allowed(over_time)
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
            round_series("in flight", "", in_flight),
            *([round_series("plan", "", planned)] if planned else []),
            *([round_series("most allowed", "", limits)] if limits else []),
            round_series("workers", "", [sample.workers for sample in over_time.columns]),
            round_series("worst event loop lag", "ms", lags_ms),
        ],
    )


def _list_most_allowed(over_time: RunOverTime) -> list[float | None]:
    """How many may be in flight in each column; none if that was never near."""
    plan = over_time.plan
    if plan is None or not plan.spec.is_open:
        return []
    limits = [float(plan.spec.concurrency) if sample.workers else None for sample in over_time.columns]
    is_near = any(
        limit is not None and (sample.in_flight or 0.0) >= _NEAR * limit
        for limit, sample in zip(limits, over_time.columns, strict=True)
    )
    return limits if is_near else []
