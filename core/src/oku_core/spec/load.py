"""The load of a spec over time: its stages, schedule and phases, and which of its keys contradict each other.

`rules` defines a fault.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from oku_core.errors import format_value
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Stage
from oku_core.spec.spec import LONGEST_RUN, MOST_CONCURRENCY, OPEN_END, Spec
from oku_core.spec.values.quantity import find_exact_seconds, format_duration, parse_exact_duration

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

    There are none if the spec has neither: then the concurrency is always the same.
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


IN_FLIGHT_S = 2
"""By default, a run with a rate may have the requests of this many seconds in flight."""

Fault = tuple[str, str]


def complete_load(spec: Spec, given: Collection[str]) -> Spec:
    """Add the number of requests and the concurrency that follow from a rate, a duration or stages.

    Args:
        spec: a spec without a fault of `iter_load_faults`.
        given: the keys that the user gave.
    """
    added: dict[str, int] = {}
    if spec.is_open:
        added["requests"] = build_schedule(spec).requests
    elif spec.is_timed and "requests" not in given:
        has_end = spec.data is not None and not spec.data.repeat
        added["requests"] = spec.requests if has_end else OPEN_END
    if "concurrency" not in given:
        added["concurrency"] = find_default_concurrency(spec)
    return msgspec.structs.replace(spec, **added)


def find_default_concurrency(spec: Spec) -> int:
    """The concurrency that follows from the other keys."""
    if stages := list_stages(spec):
        peak = max(stage.peak for stage in stages) * (IN_FLIGHT_S if spec.is_open else 1)
        return max(1, math.ceil(peak))
    if spec.connections is not None:
        return min(spec.connections * spec.streams, MOST_CONCURRENCY)
    return Spec().concurrency


def has_ample_window(spec: Spec) -> bool:
    """Whether a run with a rate may have as many requests in flight as by default: hardly any needs them."""
    return spec.is_open and spec.concurrency >= find_default_concurrency(spec)


def iter_load_faults(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    """Yield keys that contradict each other, or ask for what no run can do; each assumes none before it."""
    yield from _iter_conflicts(spec, given)
    yield from _iter_stage_faults(spec)
    plan = "stages" if spec.stages else "rate" if spec.is_open else "duration"
    if spec.is_open:
        yield from _iter_count_faults(spec, given, plan)
    length_s = spec.length_s
    if length_s is None:
        return
    if length_s > parse_exact_duration(LONGEST_RUN):
        yield plan, f"with {_show_plan(spec)} the run would last longer than {LONGEST_RUN}"
    if spec.warm_up_s is not None and find_exact_seconds(spec.warm_up_s) >= length_s:
        yield "warm-up", f"{spec.warm_up_s:g}s is not shorter than the run, which lasts {float(length_s):g}s"


def _iter_conflicts(spec: Spec, given: Collection[str]) -> Iterator[Fault]:
    if spec.stages:
        if "rate" in given:
            yield "rate", "cannot be combined with stages, which have their own rates"
        if "duration" in given:
            yield "duration", "cannot be combined with stages, which have their own durations"
        kinds = {stage.is_rate: stage for stage in spec.stages}
        if len(kinds) > 1:
            rate, count = format_value(kinds[True]), format_value(kinds[False])
            yield "stages", f"{rate} is a rate and {count} a number in flight; all stages must be of one kind"
        if "concurrency" in given and not spec.is_open:
            yield "concurrency", "cannot be combined with stages of concurrency"
    if spec.is_open:
        for key in ("range-size", "max-rate"):
            if key in given:
                yield key, "cannot be combined with a rate"
        if not spec.stages and not {"duration", "requests", "data"} & set(given):
            yield "rate", f"{format_value(spec.rate)} has no end: give duration or requests as well"


def _iter_stage_faults(spec: Spec) -> Iterator[Fault]:
    names = [stage.name for stage in list_stages(msgspec.structs.replace(spec, warm_up_s=None))]
    if repeated := next((name for name, count in Counter(names).items() if count > 1), None):
        yield "stages", f"two stages are called {format_value(repeated)}"
    if WARM_UP in names:
        yield "stages", f"{WARM_UP} is the name of another phase"
    if spec.stages and not any(stage.end or stage.begin for stage in spec.stages):
        yield "stages", "nothing is ever sent"


def _iter_count_faults(spec: Spec, given: Collection[str], plan: str) -> Iterator[Fault]:
    count = build_schedule(spec).requests
    if not count:
        yield plan, f"{_show_plan(spec)} does not make a single {spec.counted.removesuffix('s')}"
    if count > OPEN_END:
        yield plan, f"{_show_plan(spec)} makes more than {OPEN_END:_} {spec.counted}"
    if "requests" in given and spec.requests != count:
        others = plan if spec.stages else "rate and duration"
        yield "requests", f"{spec.requests} contradicts {others}, which make {count}"


def _show_plan(spec: Spec) -> str:
    """What the user wrote of a rate: the rate and how long it lasts, or all stages."""
    if spec.rate is None:
        return format_value(", ".join(spec.stages))
    end = (
        f"in {format_duration(spec.duration_s)}"
        if spec.duration_s is not None
        else f"for {spec.requests} {spec.counted}"
    )
    return f"{format_value(spec.rate)} {end}"
