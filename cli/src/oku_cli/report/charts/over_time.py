"""Charts a run over time: request rate, errors, latency quantiles and requests in flight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median_low

from oku_cli.formatting import format_count, format_latency, format_outcome, format_rate
from oku_cli.report.charts.chart import Axis, Chart, Key, Mark, Series, Track, draw_area, draw_line
from oku_cli.report.charts.scale import (
    Scale,
    build_linear_scale,
    build_log_scale,
    build_ticks,
    format_axis_latency,
    format_compact,
)
from oku_cli.report.charts.timeline import Timeline, build_columns, cut_at_gaps, format_since
from oku_cli.report.markup import Html
from oku_core.accounting.outcome import OUTCOMES, Outcome
from oku_core.results.sample import QUANTILES, Sample

TRACK = "time"
QUANTILE_LABELS = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p99_9_ms": "p99.9", "max_ms": "max"}
_LEAST_LATENCY_MS = 0.001
_OK = OUTCOMES.index(Outcome.OK)


@dataclass(frozen=True)
class RunOverTime:
    """What all charts over time have in common.

    Attributes:
        timeline: the time axis.
        columns: the samples of the run, merged into as many as are drawn.
        marks: the events that are drawn across the charts.
    """

    timeline: Timeline
    columns: Sequence[Sample]
    marks: Sequence[Mark] = ()

    @property
    def axis(self) -> Axis:
        """The axis below each chart."""
        return Axis(title="time since the start", ticks=self.timeline.build_ticks(), is_shared=True)

    @property
    def grain(self) -> str:
        """The usual length of a column, in words."""
        usual_s = median_low([sample.seconds for sample in self.columns] or [1.0])
        return "second by second" if usual_s < 1.5 else f"in steps of {format_since(usual_s)}"

    def place(self, index: int) -> float:
        """Return the position of the middle of a column, from 0 to 1."""
        sample = self.columns[index]
        return self.timeline.place(sample.at - sample.seconds / 2)

    def trace(self, read: Callable[[int], float | None]) -> list[list[tuple[float, float]]]:
        """Trace what `read` returns for each column; lines break where that is None or time is missing."""
        lines: list[list[int]] = []
        for indices in cut_at_gaps(self.columns, self.timeline):
            lines.append([])
            for index in indices:
                if read(index) is not None:
                    lines[-1].append(index)
                elif lines[-1]:
                    lines.append([])
        return [self._draw(indices, read) for indices in lines if indices]

    def _draw(self, indices: Sequence[int], read: Callable[[int], float | None]) -> list[tuple[float, float]]:
        """Draw a line through the middles of columns, from the start of the first to the end of the last."""
        points = [(self.place(index), read(index) or 0.0) for index in indices]
        first, last = self.columns[indices[0]], self.columns[indices[-1]]
        begin, end = self.timeline.place(first.at - first.seconds), self.timeline.place(last.at)
        return [(begin, points[0][1]), *points, (end, points[-1][1])]


def build_run_over_time(samples: Sequence[Sample], timeline: Timeline, marks: Sequence[Mark]) -> RunOverTime:
    """Merge the samples into columns along the timeline."""
    return RunOverTime(timeline, build_columns(samples, timeline), marks)


def build_track(over_time: RunOverTime) -> Track:
    """Build the track of all charts over time: one position for each column."""
    start = over_time.timeline.start
    return Track(
        x=[round(1000 * over_time.place(index), 1) for index in range(len(over_time.columns))],
        heads=[format_since(sample.at - sample.seconds / 2 - start) for sample in over_time.columns],
    )


def build_rate_chart(over_time: RunOverTime) -> Chart:
    """Build the chart of requests per second, stacked by outcome."""
    present = _find_present(over_time.columns)
    rates = [_divide(sample) for sample in over_time.columns]
    totals = [sum(rate) for rate in rates]
    scale, steps = build_linear_scale(max(totals))
    shapes = _stack(over_time, present, rates, scale)
    return Chart(
        id="rate",
        title="Rate",
        note=f"Requests that ended per second, by outcome; {over_time.grain}.",
        description=_describe("The rate", totals, format_rate),
        shapes=[*shapes, *(draw_line(line, "total") for line in _scale(over_time, totals, scale))],
        x=over_time.axis,
        y=Axis(title="requests per second", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key(OUTCOMES[number], format_outcome(OUTCOMES[number])) for number in present],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        track=TRACK,
        series=[_collect(format_outcome(OUTCOMES[n]), "/s", [rate[n] for rate in rates]) for n in present],
    )


def build_trouble_chart(over_time: RunOverTime) -> Chart | None:
    """Build the same chart without the requests that were `ok`; None if all were."""
    present = [number for number in _find_present(over_time.columns) if number != _OK]
    if not present:
        return None
    rates = [_divide(sample) for sample in over_time.columns]
    totals = [sum(rate) - rate[_OK] for rate in rates]
    scale, steps = build_linear_scale(max(totals))
    return Chart(
        id="trouble",
        title="Requests that were not ok",
        note="The same chart without the requests that were ok, on its own scale.",
        description=_describe("The rate of requests that were not ok", totals, format_rate),
        shapes=_stack(over_time, present, rates, scale),
        x=over_time.axis,
        y=Axis(title="requests per second", ticks=build_ticks(scale, steps, format_compact)),
        legend=[Key(OUTCOMES[number], format_outcome(OUTCOMES[number])) for number in present],
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        track=TRACK,
        series=[_collect(format_outcome(OUTCOMES[n]), "/s", [rate[n] for rate in rates]) for n in present],
    )


def build_quantile_chart(over_time: RunOverTime) -> Chart | None:
    """Build the chart of latency quantiles; None if no request was answered."""
    values = {name: [getattr(sample, name) for sample in over_time.columns] for name in QUANTILES}
    known = [max(value, _LEAST_LATENCY_MS) for row in values.values() for value in row if value is not None]
    if not known:
        return None
    scale, steps = build_log_scale(min(known), max(known))
    shapes: list[Html] = []
    ends = []
    for name, row in values.items():
        class_ = name.removesuffix("_ms")
        lines = _scale(over_time, row, scale)
        shapes += [draw_line(line, class_) for line in lines]
        if lines:
            ends.append(Key(class_, QUANTILE_LABELS[name], lines[-1][-1][1]))
    p50, p99 = ([value for value in values[name] if value is not None] for name in ("p50_ms", "p99_ms"))
    return Chart(
        id="quantiles",
        title="Latency",
        note=f"Quantiles of all answered requests, merged over all workers; {over_time.grain}. "
        "The scale is logarithmic.",
        description=f"{_describe('The median', p50, format_latency)} {_describe('p99', p99, format_latency)}",
        shapes=shapes,
        x=over_time.axis,
        y=Axis(title="latency", ticks=build_ticks(scale, steps, format_axis_latency)),
        ends=ends,
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        track=TRACK,
        series=[_collect(QUANTILE_LABELS[name], "ms", row) for name, row in reversed(values.items())],
    )


def build_load_chart(over_time: RunOverTime) -> Chart:
    """Build the chart of requests in flight; workers and event loop lag can be read out of it."""
    in_flight = [sample.in_flight for sample in over_time.columns]
    seen = [number for number in in_flight if number is not None]
    lags_ms = [None if sample.lag_s is None else 1000 * sample.lag_s for sample in over_time.columns]
    scale, steps = build_linear_scale(max(seen, default=0.0))
    lines = _scale(over_time, in_flight, scale)
    return Chart(
        id="load",
        title="In flight",
        note="Requests sent but not yet answered, over all workers.",
        description=_describe("The number in flight", seen, lambda number: format_count(round(number))),
        shapes=[
            *(draw_area(line, [(x, 0.0) for x, _ in line], "in-flight") for line in lines),
            *(draw_line(line, "in-flight") for line in lines),
        ],
        x=over_time.axis,
        y=Axis(title="requests", ticks=build_ticks(scale, steps, format_compact)),
        marks=over_time.marks,
        bands=over_time.timeline.pauses,
        track=TRACK,
        series=[
            _collect("in flight", "", in_flight),
            _collect("workers", "", [sample.workers for sample in over_time.columns]),
            _collect("worst event loop lag", "ms", lags_ms),
        ],
    )


def _find_present(columns: Sequence[Sample]) -> list[int]:
    """Return the indices of the outcomes that occurred; `ok` is always among them."""
    return [n for n in range(len(OUTCOMES)) if n == _OK or any(sample.outcomes[n] for sample in columns)]


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


def _scale(
    over_time: RunOverTime, values: Sequence[float | None], scale: Scale
) -> list[list[tuple[float, float]]]:
    def read(index: int) -> float | None:
        value = values[index]
        return None if value is None else scale.place(value)

    return over_time.trace(read)


def _collect(label: str, unit: str, values: Sequence[float | None]) -> Series:
    """Build a series with its numbers rounded to four significant digits."""
    return Series(label, unit, [None if value is None else float(f"{value:.4g}") for value in values])


def _describe(what: str, values: Sequence[float], write: Callable[[float], str]) -> str:
    if not values:
        return f"{what} is not known."
    return (
        f"{what} ranged from {write(min(values))} to {write(max(values))} and ended at {write(values[-1])}."
    )
