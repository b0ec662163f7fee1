"""Common parts of charts over time: the time axis, the columns, and the lines traced through them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median_low

from oku_cli.report.charts.chart import Axis, Mark, Series, Track
from oku_cli.report.charts.planned_load import PhaseBand, Plan
from oku_cli.report.charts.scale import Scale
from oku_cli.report.charts.timeline import Timeline, build_columns, cut_at_gaps
from oku_core.results.sample import Sample
from oku_core.tables.formatting import format_since

TRACK = "time"


@dataclass(frozen=True)
class RunOverTime:
    """What all charts over time have in common.

    Attributes:
        timeline: the time axis.
        columns: the samples of the run, merged into as many as are drawn.
        marks: the events that are drawn across the charts.
        plan: what the run was meant to do; None if that is not known.
    """

    timeline: Timeline
    columns: Sequence[Sample]
    marks: Sequence[Mark] = ()
    plan: Plan | None = None

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

    @cached_property
    def phases(self) -> list[PhaseBand]:
        """The phases of the run, where they are drawn."""
        return [] if self.plan is None else self.plan.list_bands(self.timeline)

    def trace_plan(self, *, of_rate: bool) -> list[list[tuple[float, float]]]:
        """Trace the rate that is planned, or the concurrency: positions and levels; none if it is not."""
        if self.plan is None or self.plan.spec.is_open is not of_rate:
            return []
        return self.plan.trace_levels(self.timeline)

    def list_planned(self, *, of_rate: bool) -> list[float | None]:
        """List the planned load in the middle of each column; empty without a plan."""
        if self.plan is None or self.plan.spec.is_open is not of_rate or not self.plan.stages:
            return []
        return [
            self.plan.find_level(self.timeline, sample.at - sample.seconds / 2) for sample in self.columns
        ]

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


def build_run_over_time(
    samples: Sequence[Sample], timeline: Timeline, marks: Sequence[Mark], plan: Plan | None = None
) -> RunOverTime:
    """Merge the samples into columns along the timeline."""
    return RunOverTime(timeline, build_columns(samples, timeline), marks, plan)


def build_track(over_time: RunOverTime) -> Track:
    """Build the track of all charts over time: one position for each column."""
    start = over_time.timeline.start
    return Track(
        x=[round(1000 * over_time.place(index), 1) for index in range(len(over_time.columns))],
        heads=[format_since(sample.at - sample.seconds / 2 - start) for sample in over_time.columns],
    )


def trace_values(
    over_time: RunOverTime, values: Sequence[float | None], scale: Scale
) -> list[list[tuple[float, float]]]:
    """Trace one value for each column on a scale; lines break where it is None. No values have no lines."""
    if not values:
        return []

    def read(index: int) -> float | None:
        value = values[index]
        return None if value is None else scale.place(value)

    return over_time.trace(read)


def round_series(label: str, unit: str, values: Sequence[float | None]) -> Series:
    """Build a series with its numbers rounded to four significant digits."""
    return Series(label, unit, [None if value is None else float(f"{value:.4g}") for value in values])


def describe(what: str, values: Sequence[float], write: Callable[[float], str]) -> str:
    """Describe the range of a figure in a sentence, for readers who cannot see the chart."""
    if not values:
        return f"{what} is not known."
    return (
        f"{what} ranged from {write(min(values))} to {write(max(values))} and ended at {write(values[-1])}."
    )
