"""Lists all tables of a run for programs that show it; builds the main figures and the workers."""

from collections.abc import Iterator, Sequence
from statistics import median

from oku_core.errors import format_value
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import format_duration
from oku_core.summary.judgement import Judgement
from oku_core.summary.request_summary import measure_rate
from oku_core.summary.summary import Summary, Unit, WorkerSummary, count_bytes_received
from oku_core.tables.formatting import format_count, format_rate, format_requests, in_units
from oku_core.tables.outcome_tables import (
    build_failures,
    build_name_failures,
    build_outcomes,
    build_statuses,
)
from oku_core.tables.part_tables import build_names, build_phase_targets, build_phases, build_targets
from oku_core.tables.table import (
    Cell,
    Column,
    Quantity,
    Rank,
    Role,
    Row,
    Table,
    build_bar,
    build_measured,
    build_row,
    build_table,
)
from oku_core.tables.threshold_tables import build_thresholds
from oku_core.tables.time_tables import build_steps, build_target_steps, build_times

_FIGURE_COLUMNS = {"figure": Role.NAME, "value": Role.TEXT}
MOST_LISTED = 100
"""At most this many workers are listed."""
_LOST = Cell(text="lost", judgement=Judgement.BAD)


class UnknownPhaseError(Exception):
    """The run has no such phase."""


def list_tables(summary: Summary, load: Spec | None = None) -> list[Table]:
    """List the tables of a run that have rows; targets cover the whole run."""
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


def list_worker_tables(summary: Summary, most: int, most_listed: int = MOST_LISTED) -> list[Table]:
    """List the table of all workers; of more than `most`, their spread, and all or the lost ones.

    The lost ones alone have rows if there are more workers than `most_listed`.
    """
    workers = summary.workers
    if len(workers) <= most:
        return [_build_workers(summary, workers, _describe(workers), most)] if workers else []
    lost = [worker for worker in workers if worker.lost]
    has_all = len(workers) <= most_listed
    listed, title = (workers, "All workers") if has_all else (lost, "Lost workers")
    tables = [_build_spread(workers, summary.unit)]
    return [*tables, _build_workers(summary, listed, title, most_listed)] if listed else tables


def describe_processes(summary: Summary) -> str:
    """Describe the memory of the other processes; empty if that is not known."""
    memory = ", ".join(f"{process.name} {process.peak_mb:,.0f} MB" for process in summary.processes)
    return f"Peak memory of the other processes: {memory}." if memory else ""


def _describe(workers: Sequence[WorkerSummary]) -> str:
    lost = sum(worker.lost for worker in workers)
    plural = "s" if len(workers) > 1 else ""
    return f"{format_count(len(workers))} worker{plural}, {format_count(lost) if lost else 'none'} lost"


def _build_workers(summary: Summary, workers: Sequence[WorkerSummary], title: str, most: int) -> Table:
    # Of the requests of one worker it is not known how many were sent.
    active_s = 0.0 if summary.outcomes.not_sent or summary.outcomes.lost else summary.active_s
    whole = max((worker.requests for worker in workers), default=0)
    has_lost = any(worker.lost for worker in workers)
    columns = [
        Column(key="worker", head="worker", role=Role.NAME),
        *_build_columns(summary.unit),
        *([Column(key="state", head="", role=Role.TEXT)] if has_lost else []),
    ]
    rows = [
        build_row(
            columns,
            [
                worker.name,
                worker.requests,
                build_bar([("ok", worker.requests)], whole),
                measure_rate(worker.requests, active_s) if active_s else None,
                worker.cpu_s,
                _build_memory(worker.peak_rss_mb),
                *([_LOST if worker.lost else Cell()] if has_lost else []),
            ],
        )
        for worker in workers[:most]
    ]
    return Table(name="workers", title=title, columns=columns, rows=rows, left_out=len(workers) - len(rows))


def _build_spread(workers: Sequence[WorkerSummary], unit: Unit) -> Table:
    """Build the spread of each column by itself: the row `max` is not one worker."""
    columns = [
        Column(key="spread", head="each column by itself", role=Role.NAME),
        *(column for column in _build_columns(unit) if column.key not in ("bar", "rate")),
    ]
    rows: list[Row] = []
    for name, pick in (("min", min), ("median", median), ("max", max)):
        requests: float = pick([worker.requests for worker in workers])
        cpu_s: float = pick([worker.cpu_s for worker in workers])
        memory_mb: float = pick([worker.peak_rss_mb for worker in workers])
        rows.append(build_row(columns, [name, round(requests), cpu_s, _build_memory(memory_mb)]))
    return Table(name="worker_spread", title=_describe(workers), columns=columns, rows=rows)


def _build_columns(unit: Unit) -> list[Column]:
    return [
        Column(key="requests", head=in_units("requests", unit), quantity=Quantity.COUNT),
        Column(key="bar", head="", role=Role.BAR),
        Column(key="rate", head="rate", quantity=Quantity.RATE, rank=Rank.SPARE),
        Column(key="cpu", head="CPU", quantity=Quantity.DURATION),
        Column(key="peak_memory", head="peak memory", quantity=Quantity.SIZE),
    ]


def _build_memory(peak_mb: float) -> Cell:
    return Cell(text=f"{peak_mb:,.0f} MB", value=round(peak_mb * 1e6))
