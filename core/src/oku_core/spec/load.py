"""The load of a spec over time: its stages, schedule and phases, which follow from the spec alone."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import find_exact_seconds

WARM_UP = "warm-up"
"""The phase that a run begins with if its spec has a warm-up."""
MAIN = "main"
"""The phase after the warm-up of a run without stages."""


class PhaseTime(NamedTuple):
    """When a phase of a run begins and ends, in seconds of the run's activity.

    Attributes:
        name: unique in the run; empty if the run has only one phase, without a name.
        begin_s: when it begins.
        end_s: when it ends; None if only the last request of the run ends it.
    """

    name: str
    begin_s: Fraction
    end_s: Fraction | None


def list_stages(spec: Spec) -> tuple[Stage, ...]:
    """The rate, or the requests in flight over all workers, over time; each name is a phase.

    There are none if the spec says neither: then the concurrency is always the same.
    """
    stages = _link(spec)
    if spec.rate is not None and (length_s := spec.length_s) is not None:
        level = spec.rate.per_second
        stages = iter([Stage(MAIN if spec.warm_up_s else "", length_s, level, level)])
    if spec.warm_up_s is not None:
        stages = _cut_warm_up(stages, find_exact_seconds(spec.warm_up_s))
    return tuple(stages)


def build_schedule(spec: Spec) -> Schedule:
    """Build the schedule of a spec with a rate; the same spec always has the same due times."""
    return Schedule(list_stages(spec), spec.arrivals, spec.seed or 0)


def list_phase_times(spec: Spec) -> tuple[PhaseTime, ...]:
    """The phases of a run in their order; at least one."""
    if stages := list_stages(spec):
        return tuple(_group(stages))
    if spec.warm_up_s is None:
        return (PhaseTime("", Fraction(0), spec.length_s),)
    warm_up_s = find_exact_seconds(spec.warm_up_s)
    return PhaseTime(WARM_UP, Fraction(0), warm_up_s), PhaseTime(MAIN, warm_up_s, spec.length_s)


def _link(spec: Spec) -> Iterator[Stage]:
    """The stages that the user wrote; by default, one begins where the one before it ended."""
    level: Fraction | None = None
    for number, text in enumerate(spec.stages, start=1):
        if text.begin is not None:
            level = text.begin
        elif level is None:
            level = text.end
        yield Stage(text.name or f"stage-{number}", text.duration_s, level, text.end)
        level = text.end


def _cut_warm_up(stages: Iterable[Stage], left_s: Fraction) -> Iterator[Stage]:
    for stage in stages:
        if left_s <= 0:
            yield stage
        elif stage.duration <= left_s:
            yield Stage(WARM_UP, stage.duration, stage.begin, stage.end)
        else:
            before, after = stage.cut(left_s)
            yield from (Stage(WARM_UP, before.duration, before.begin, before.end), after)
        left_s -= stage.duration


def _group(stages: Iterable[Stage]) -> Iterator[PhaseTime]:
    begin_s = Fraction(0)
    for name, parts in groupby(stages, attrgetter("name")):
        end_s = begin_s + sum(part.duration for part in parts)
        yield PhaseTime(name, begin_s, end_s)
        begin_s = end_s
