"""Shows what each worker did, in a table that stays short however many workers there were."""

from collections.abc import Callable, Sequence
from statistics import median

from rich.console import RenderableType
from rich.text import Text

from oku_cli.terminal.layout import AlignedTable
from oku_cli.terminal.palette import BAD
from oku_core.results.summary import Unit, WorkerSummary
from oku_core.tables.formatting import format_count, in_units

MOST_WORKERS = 8
"""Up to this many workers have a row each; of more, only the spread is shown."""
MOST_LOST = 3
"""Where the spread is shown, this many lost workers have a row each."""


def build_workers(workers: Sequence[WorkerSummary], unit: Unit = Unit.REQUEST) -> RenderableType:
    """Show requests, processor time and memory by worker; of many workers, the spread and the lost ones."""
    # Names of pods differ at their ends, so long names are folded, not cut.
    table = AlignedTable(("left", "right", "right", "right", "left"), fold_to=12)
    table.add_row(f"{format_count(len(workers))} in all", in_units("requests", unit), "cpu", "memory")
    if len(workers) <= MOST_WORKERS:
        _add_each(table, workers)
    else:
        _add_spread(table, workers)
        _add_lost(table, [worker for worker in workers if worker.lost])
    return table


def _add_each(table: AlignedTable, workers: Sequence[WorkerSummary]) -> None:
    for worker in workers:
        table.add_row(
            Text(worker.name),
            format_count(worker.requests),
            f"{worker.cpu_s:,.1f} s",
            f"{worker.peak_rss_mb:,.0f} MB",
            *([Text("lost", style=BAD)] if worker.lost else []),
        )


def _add_spread(table: AlignedTable, workers: Sequence[WorkerSummary]) -> None:
    """Add the spread of each column by itself: the row `max` is not one worker."""
    spreads: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
        ("min", min), ("median", median), ("max", max),
    )  # fmt: skip
    for name, pick in spreads:
        table.add_row(
            name,
            format_count(round(pick([worker.requests for worker in workers]))),
            f"{pick([worker.cpu_s for worker in workers]):,.1f} s",
            f"{pick([worker.peak_rss_mb for worker in workers]):,.0f} MB",
        )


def _add_lost(table: AlignedTable, lost: Sequence[WorkerSummary]) -> None:
    _add_each(table, lost[:MOST_LOST])
    if len(lost) > MOST_LOST:
        table.add_row(Text(f"and {format_count(len(lost) - MOST_LOST)} more lost", style=BAD))
