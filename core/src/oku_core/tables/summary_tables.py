"""Lists all tables of a run, for programs that show it."""

from collections.abc import Iterator

from oku_core.errors import UserError, format_value
from oku_core.results.summary import Summary, Unit
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)
from oku_core.tables.phase_tables import build_phases
from oku_core.tables.table import Table
from oku_core.tables.target_tables import build_names, build_phase_targets, build_targets
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_steps, build_target_steps, build_times
from oku_core.tables.worker_tables import MOST_LISTED, list_worker_tables


def list_tables(summary: Summary) -> list[Table]:
    """List the tables of a run that have rows; targets are those of the whole run."""
    return [table for table in _iter_tables(summary) if table.rows]


def list_phase_tables(summary: Summary, phase: str) -> list[Table]:
    """List the tables of one phase; `UserError` if the run has no such phase."""
    for each in summary.phases:
        if each.name == phase:
            return [build_phase_targets(each)] if each.targets else []
    names = ", ".join(each.name for each in summary.phases) or "no phases"
    raise UserError(f"phase: {format_value(phase)} is not in run {summary.run}, which has {names}")


def _iter_tables(summary: Summary) -> Iterator[Table]:
    yield build_outcomes(summary)
    yield build_statuses(summary)
    yield build_thresholds(summary.thresholds)
    yield build_failures(summary)
    yield build_times(summary)
    if summary.unit is Unit.REQUEST:
        yield build_steps(summary)
        yield build_target_steps(summary.targets)
    yield build_phases(summary)
    yield build_targets(summary)
    yield build_names(summary.inner_requests)
    yield build_name_failures(summary.inner_requests)
    yield from list_worker_tables(summary, MOST_LISTED)
