"""The plan of a run, placed at the times at which it was carried out: the plan behind charts over time.

The plan follows the clock of the run, which stands still in pauses. A time that the clock showed twice
belongs to the first period that reached it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import NamedTuple

from oku_cli.report.charts.timeline import Timeline
from oku_core.results.run_api import RunPeriod
from oku_core.results.sample import Sample
from oku_core.schedule.stage import Stage
from oku_core.spec.load import WARM_UP, PhaseTime, list_phase_times, list_stages
from oku_core.spec.spec import Spec

_NEW_PERIOD_S = 1.0
"""A pause that is shorter than that does not show."""
_LEAST_WIDTH = 0.0005


class PhaseBand(NamedTuple):
    """A phase, or the part of one between two pauses, from its left to its right end; both from 0 to 1."""

    name: str
    left: float
    right: float

    @property
    def is_warm_up(self) -> bool:
        """Whether it is, or belongs to, the warm-up."""
        return self.name == WARM_UP


class _Stretch(NamedTuple):
    """A time in which the clock of the run, which begins it with `since_s`, was new until `until_s`."""

    starts_at: float
    since_s: float
    until_s: float

    def find_at(self, clock_s: float) -> float:
        """The Unix time at which the clock showed this."""
        return self.starts_at + clock_s - self.since_s


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    Attributes:
        spec: its load.
        periods: when its clock ran.
    """

    spec: Spec
    periods: Sequence[RunPeriod]

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The rate, or the concurrency, over time; none if the spec has neither."""
        return list_stages(self.spec)

    def trace_levels(self, timeline: Timeline) -> list[list[tuple[float, float]]]:
        """Trace the rate, or the concurrency, that stages ask for: lines of positions and levels."""
        lines = []
        for stretch in self._list_stretches(timeline):
            line = [
                (timeline.place(stretch.find_at(float(clock_s))), float(stage.level_after(clock_s - begin_s)))
                for stage, since_s, until_s, begin_s in self._clip_stages(stretch)
                for clock_s in (since_s, until_s)
            ]
            if line:
                lines.append(line)
        return lines

    def find_level(self, timeline: Timeline, at: float) -> float | None:
        """The rate, or the concurrency, that stages ask for at a Unix time; None if the clock stood still."""
        for stretch in self._list_stretches(timeline):
            clock_s = Fraction(stretch.since_s + at - stretch.starts_at)
            for stage, since_s, until_s, begin_s in self._clip_stages(stretch):
                if since_s <= clock_s < until_s:
                    return float(stage.level_after(clock_s - begin_s))
        return None

    def list_bands(self, timeline: Timeline) -> list[PhaseBand]:
        """The phases of the run that have begun; none if it has only one, without a name."""
        times = [time for time in list_phase_times(self.spec) if time.name]
        bands = []
        for stretch in self._list_stretches(timeline):
            for time in times:
                left, right = (timeline.place(at) for at in _place_phase(time, stretch))
                if right - left > _LEAST_WIDTH:
                    bands.append(PhaseBand(time.name, left, right))
        return bands

    def measure_due_s(self, timeline: Timeline, since: float, until: float) -> float:
        """For how many seconds between two Unix times requests were due."""
        length_s = inf if self.spec.length_s is None else float(self.spec.length_s)
        overlaps = (
            min(until, stretch.find_at(min(stretch.until_s, length_s))) - max(since, stretch.starts_at)
            for stretch in self._list_stretches(timeline)
        )
        return sum(max(0.0, overlap) for overlap in overlaps)

    def _list_stretches(self, timeline: Timeline) -> Iterator[_Stretch]:
        """List the parts of the periods that advance the clock and lie within the timeline."""
        reached_s, end = 0.0, timeline.spans[-1][1]
        for period in self.periods:
            since_s = max(period.offset_s, reached_s)
            starts_at = period.starts_at + since_s - period.offset_s
            reached_s = max(since_s, inf if period.stop_s is None else period.stop_s)
            until_s = min(reached_s, since_s + end - starts_at)
            if until_s > since_s:
                yield _Stretch(starts_at, since_s, until_s)

    def _clip_stages(self, stretch: _Stretch) -> Iterator[tuple[Stage, Fraction, Fraction, Fraction]]:
        """The stages in a stretch, each with the part of it that lies there, and its beginning."""
        begins = accumulate((stage.duration for stage in self.stages), initial=Fraction(0))
        for stage, begin_s in zip(self.stages, begins, strict=False):
            since_s = max(begin_s, Fraction(stretch.since_s))
            until_s = min(begin_s + stage.duration, Fraction(stretch.until_s))
            if since_s < until_s:
                yield stage, since_s, until_s, begin_s


def build_plan(spec: Spec | None, periods: Sequence[RunPeriod], samples: Sequence[Sample]) -> Plan | None:
    """Build the plan of a run from its load and from when its clock ran; None if either is not known."""
    periods = periods or read_periods(samples)
    return Plan(spec, periods) if spec is not None and periods else None


def read_periods(samples: Sequence[Sample]) -> list[RunPeriod]:
    """Find out from samples when a run was active."""
    periods: list[RunPeriod] = []
    for sample in samples:
        if not sample.active_s:
            continue
        last = periods[-1] if periods else None
        if last and sample.at - last.starts_at - (sample.active_s - last.offset_s) < _NEW_PERIOD_S:
            periods[-1] = RunPeriod(last.starts_at, last.offset_s, sample.active_s)
            continue
        offset_s = 0.0 if last is None or last.stop_s is None else last.stop_s
        periods.append(RunPeriod(sample.at - (sample.active_s - offset_s), offset_s, sample.active_s))
    return periods


def _place_phase(time: PhaseTime, stretch: _Stretch) -> tuple[float, float]:
    """The Unix times between which a phase lies in a stretch; falling if it does not."""
    since_s = max(float(time.begin_s), stretch.since_s)
    until_s = stretch.until_s if time.end_s is None else min(float(time.end_s), stretch.until_s)
    return stretch.find_at(since_s), stretch.find_at(until_s)
