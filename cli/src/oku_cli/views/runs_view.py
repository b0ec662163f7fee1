"""Builds the table of `oku runs`, newest first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oku_cli.formatting import format_count, format_date_minute
from oku_cli.process.interrupt_hints import InterruptHints, describe_pause
from oku_cli.terminal.layout import Flow
from oku_cli.terminal.palette import MOST_COLUMNS, STATE_STYLES, STRONG
from oku_core.accounting.run_state import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Holds a run as it is listed; `created_at` is a Unix time."""

    run: str
    name: str
    state: RunState
    requests: int
    accounted: int
    created_at: float
    reason: str = ""


_HEADS = ("run", "state", "requests", "accounted", "created")
MOST_HINTS = 3
"""A hint on how to resume is shown for this many paused runs, the newest ones."""


def build_hints(rows: Iterable[RunRow], hints: InterruptHints) -> list[str]:
    """Say why the newest paused runs are paused, and how to resume each."""
    paused = [row for row in rows if row.state is RunState.PAUSED]
    newest = sorted(paused, key=lambda row: row.created_at, reverse=True)[:MOST_HINTS]
    return [
        f"{row.run} {describe_pause(row.reason)}; {hints.describe_resume(row.run, row.state)}"
        for row in newest
    ]


class RunsTable:
    """Shows one line for each run where that fits, otherwise a block of lines.

    Args:
        rows: the runs in the order of the table.
        fits: whether the table has to fit on a screen, so that long names are cut.
    """

    _NAME_COLUMNS = len("name…")

    def __init__(self, rows: Sequence[RunRow], *, fits: bool) -> None:
        self._rows = rows
        self._fits = fits

    def __rich_console__(self, _: object, options: ConsoleOptions) -> RenderResult:
        """Draw a table, or a block for each run."""
        cells = [_build_cells(row) for row in self._rows]
        columns = zip(_HEADS, *cells, strict=True)
        needed = sum(max(cell_len(str(cell)) for cell in column) + 2 for column in columns)
        if self._fits and needed + self._NAME_COLUMNS > options.max_width:
            for row in self._rows:
                yield from _build_block(row)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=self._fits, header_style="")
        for head in _HEADS:
            is_count = head in ("requests", "accounted")
            table.add_column(head, no_wrap=True, justify="right" if is_count else "left")
        table.add_column("name", no_wrap=True, overflow="ellipsis", ratio=1 if self._fits else None)
        for row, line in zip(self._rows, cells, strict=True):
            table.add_row(*line, Text(row.name))
        yield table


def build_runs_table(rows: Iterable[RunRow], *, fits: bool = True) -> RenderableType:
    """Build the table, or a line that says how to start the first run.

    Args:
        rows: the runs in any order.
        fits: whether long names are cut so that a line fits on the screen.
    """
    newest = sorted(rows, key=lambda row: row.created_at, reverse=True)
    if not newest:
        return Text("No runs yet. Start one with `oku run`.")
    table = RunsTable(newest, fits=fits)
    return Constrain(table, MOST_COLUMNS) if fits else table


def _build_cells(row: RunRow) -> tuple[Text, ...]:
    return (
        Text(row.run, style=STRONG),
        Text(row.state, style=STATE_STYLES[row.state]),
        Text(format_count(row.requests)),
        Text(format_count(row.accounted)),
        Text(format_date_minute(row.created_at)),
    )


def _build_block(row: RunRow) -> Iterator[RenderableType]:
    run, state, requests, accounted, created = _build_cells(row)
    yield Flow(run, state, gap=2, indent=2)
    yield Padding(Flow(accounted, Text("of ").append_text(requests), "accounted"), (0, 0, 0, 2))
    yield Padding(Group(Flow(created), Text(row.name, no_wrap=True, overflow="ellipsis")), (0, 0, 0, 2))
