"""Builds the table of phases: what was planned for the warm-up and each stage, and what came of it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from oku_core.schedule.stage import Stage
from oku_core.spec.load import list_stages
from oku_core.spec.spec import Spec
from oku_core.summary.request_summary import PhaseSummary
from oku_core.summary.summary import Summary
from oku_core.tables.formatting import format_compact, format_since
from oku_core.tables.outcome_tables import describe_troubles
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Table,
    Value,
    build_table,
    judge_share,
)
from oku_core.tables.time_tables import build_time_columns, list_figures, list_times

_FIGURES = {"p50": Rank.SPARE, "p99": Rank.ESSENTIAL}


def build_phases(summary: Summary, load: Spec | None = None) -> Table:
    """Build the table; it has no rows if the run has only one phase, without a name.

    Args:
        summary: of the run.
        load: a spec with its load, which says how many a stage of a closed run keeps in flight.
    """
    phases = summary.phases
    is_open = any(phase.due is not None for phase in phases)
    levels = {} if is_open or load is None else _describe_levels(load)
    times = list_times(phases)
    columns = [
        Column(key="phase", head="phase", role=Role.NAME),
        Column(key="time", head="time", role=Role.TEXT, quantity=Quantity.DURATION, rank=Rank.DETAIL),
        *([Column(key="due", head="due", quantity=Quantity.COUNT)] if is_open else []),
        Column(key="completed", head="completed", quantity=Quantity.COUNT),
        Column(key="ok", head="ok", quantity=Quantity.SHARE),
        *_list_planned(has_levels=bool(levels), is_open=is_open),
        Column(key="sent_rps", head="sent/s", quantity=Quantity.RATE),
        Column(key="completed_rps", head="completed/s", quantity=Quantity.RATE),
        *build_time_columns(times, _FIGURES),
    ]
    rows: Iterator[list[Value]] = (
        [
            Cell(text=phase.name, detail=describe_troubles(phase.outcomes)),
            Cell(text=_describe_time(phase), value=phase.begin_s),
            *([phase.due] if is_open else []),
            phase.completed,
            judge_share(phase.outcomes.ok, sum(msgspec.structs.astuple(phase.outcomes))),
            *_list_plan(phase, levels, is_open=is_open),
            *(_list_rates(phase) if summary.active_s > phase.begin_s else (None, None)),
            *list_figures(phase, times, _FIGURES),
        ]
        for phase in phases
    )
    return build_table("phases", "Phases", columns, rows)


def _list_planned(*, has_levels: bool, is_open: bool) -> Iterator[Column]:
    if is_open:
        yield Column(key="planned_rps", head="planned/s", quantity=Quantity.RATE)
    elif has_levels:
        yield Column(key="planned", head="planned", role=Role.TEXT, rank=Rank.SPARE)


def _list_plan(phase: PhaseSummary, levels: Mapping[str, str], *, is_open: bool) -> Iterator[Value]:
    if is_open:
        yield phase.planned_rps
    elif levels:
        yield levels.get(phase.name, "")


def _list_rates(phase: PhaseSummary) -> tuple[float, float]:
    return phase.sent_rps, phase.completed_rps


def _describe_time(phase: PhaseSummary) -> str:
    end = "the end" if phase.end_s is None else format_since(phase.end_s)
    return f"{format_since(phase.begin_s)} to {end}"


def _describe_levels(load: Spec) -> dict[str, str]:
    """How many requests each stage keeps in flight: `0 to 50 in flight`."""
    groups = groupby(list_stages(load), attrgetter("name"))
    return {name: _describe_concurrency(list(stages)) for name, stages in groups}


def _describe_concurrency(stages: Sequence[Stage]) -> str:
    levels = [stages[0].begin, *(stage.end for stage in stages)]
    ends = [level for level, _ in groupby(levels)]
    return f"{' to '.join(format_compact(float(level)) for level in ends)} in flight"
