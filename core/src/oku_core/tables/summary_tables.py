"""Lists all tables of a run, for programs that show it, and builds that of its main figures."""

from collections.abc import Iterator

from oku_core.errors import format_value
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.summary import Summary, Unit, count_bytes_received
from oku_core.tables.formatting import format_count, format_rate, format_requests, in_units
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)
from oku_core.tables.phase_tables import build_phases
from oku_core.tables.table import Cell, Column, Quantity, Role, Table, build_measured, build_table
from oku_core.tables.target_tables import build_names, build_phase_targets, build_targets
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_steps, build_target_steps, build_times
from oku_core.tables.worker_tables import MOST_LISTED, list_worker_tables

_FIGURE_COLUMNS = {"figure": Role.NAME, "value": Role.TEXT}


class UnknownPhaseError(Exception):
    """The run has no such phase."""


def list_tables(summary: Summary, load: Spec | None = None) -> list[Table]:
    """List the tables of a run that have rows; targets are those of the whole run.

    Args:
        summary: of the run.
        load: a spec with its load; None if that is not known.
    """
    return [table for table in _iter_tables(summary, load) if table.rows]


def list_phase_tables(summary: Summary, phase: str) -> list[Table]:
    """List the tables of one phase; `UnknownPhaseError` if the run has no such phase."""
    for each in summary.phases:
        if each.name == phase:
            return [build_phase_targets(each)] if each.targets else []
    names = ", ".join(each.name for each in summary.phases) or "no phases"
    raise UnknownPhaseError(f"phase: {format_value(phase)} is not in run {summary.run}, which has {names}")


def build_figures(summary: Summary) -> Table:
    """Build the table of what a run has done in all: each value has a quantity of its own."""
    columns = [Column(key=key, head=key, role=role) for key, role in _FIGURE_COLUMNS.items()]
    return build_table("figures", "", columns, _iter_figures(summary))


def _iter_figures(summary: Summary) -> Iterator[tuple[str, Cell]]:
    units = "" if summary.unit is Unit.REQUEST else f" {in_units('requests', summary.unit)}"
    accounted = f"{format_count(summary.accounted)} of {format_requests(summary.requests)}{units}"
    yield "accounted", build_measured(Quantity.COUNT, summary.accounted, accounted)
    if summary.active_s:
        rate = format_rate(summary.throughput_rps)
        if summary.planned_rps is not None:
            rate = f"{rate} sent, {format_rate(summary.completed_rps)} completed"
        text = f"{rate} over {format_duration(summary.measured_s)}"
        yield "throughput", build_measured(Quantity.RATE, summary.throughput_rps, text)
    if summary.planned_rps is not None:
        yield "planned", build_measured(Quantity.RATE, summary.planned_rps)
    yield "received", build_measured(Quantity.SIZE, count_bytes_received(summary))
    resent = f"at most {format_count(summary.resent_at_most)}"
    yield "resent", build_measured(Quantity.COUNT, summary.resent_at_most, resent)


def _iter_tables(summary: Summary, load: Spec | None) -> Iterator[Table]:
    yield build_figures(summary)
    yield build_outcomes(summary, load)
    yield build_statuses(summary)
    yield build_thresholds(summary.thresholds)
    yield build_failures(summary)
    yield build_times(summary)
    if summary.unit is Unit.REQUEST:
        yield build_steps(summary)
        yield build_target_steps(summary.targets)
    yield build_phases(summary, load)
    yield build_targets(summary)
    yield build_names(summary.inner_requests)
    yield build_name_failures(summary.inner_requests)
    yield from list_worker_tables(summary, MOST_LISTED)
