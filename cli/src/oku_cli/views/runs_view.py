"""Builds the table of `oku runs`, newest first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult  # noqa: TID251  # a type
from rich.constrain import Constrain
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from oku_cli.process.interrupt_hints import InterruptHints, describe_pause
from oku_cli.terminal.console import MOST_COLUMNS, STRONG
from oku_cli.terminal.layout import Flow, build_state
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import OPEN_END
from oku_core.summary.judgement import judge_counts
from oku_core.tables.formatting import (
    NOTHING,
    format_count,
    format_date_minute,
    format_elapsed,
    format_requests,
    format_share,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """Holds a run as it is listed.

    `load` ends with the engine, `created_at` is a Unix time, `active_s` the time that it has run for.
    """

    run: str
    name: str
    state: RunState
    requests: int
    accounted: int
    ok: int
    created_at: float
    reason: str = ""
    target: str = ""
    load: str = ""
    active_s: float = 0.0

    @property
    def title(self) -> str:
        """The target and the load, as the headline of the run has them."""
        return " · ".join(filter(None, (self.target, self.load)))


_OK = "ok"
_HEADS = ("run", "state", "requests", "accounted", _OK, "created")
_COUNT_HEADS = ("requests", "accounted", _OK)
_TITLE_HEAD = "target and load"
_GAP = 2
MOST_HINTS = 3
"""A hint on how to resume is shown for this many paused runs, the newest ones."""


def build_hints(rows: Iterable[ListedRun], hints: InterruptHints) -> list[str]:
    """Explain why the newest paused runs are paused, and how to resume each."""
    paused = [row for row in rows if row.state is RunState.PAUSED]
    newest = sorted(paused, key=lambda row: row.created_at, reverse=True)[:MOST_HINTS]
    return [
        f"{row.run} {describe_pause(row.reason)}; {hints.describe_resume(row.run, row.state)}"
        for row in newest
    ]


class RunsTable:
    """Shows a line for each run, or two where its target and load do not fit in, otherwise a block of lines.

    Args:
        rows: the runs in the order of the table.
        fits: whether the table has to fit on a screen, so that long texts are cut.
    """

    _NAME_COLUMNS = len("name…")
    _WANTED_NAME_COLUMNS = len("nightly-soak")

    def __init__(self, rows: Sequence[ListedRun], *, fits: bool) -> None:
        self._rows = rows
        self._fits = fits

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw a table, or a block for each run."""
        heads = list(_HEADS)
        title_columns = self._find_widest(_TITLE_HEAD, [row.title for row in self._rows])
        name_columns = self._find_widest("name", [row.name for row in self._rows])
        if self._fits and options.max_width - self._measure(heads) < min(
            self._WANTED_NAME_COLUMNS, name_columns
        ):
            heads.remove(_OK)  # the colour of the state is enough
        left = options.max_width - self._measure(heads)
        if not self._fits:
            yield self._build_table(heads, title_columns, name_columns)
        elif left >= title_columns + _GAP + min(self._WANTED_NAME_COLUMNS, name_columns):
            yield self._build_table(heads, title_columns, min(name_columns, left - _GAP - title_columns))
        elif left >= self._NAME_COLUMNS:
            lines = console.render_lines(self._build_table(heads, 0, min(name_columns, left)), options)
            titles = (None, *(row.title for row in self._rows))
            for line, title in zip(lines, titles, strict=True):
                yield Segments((*line, Segment.line()))
                if title:
                    yield Padding(Text(title, no_wrap=True, overflow="ellipsis"), (0, 0, 0, _GAP))
        else:
            for row in self._rows:
                yield from _build_block(row)

    def _measure(self, heads: Sequence[str]) -> int:
        """The width of the columns with these heads, the gaps behind them included."""
        cells = [_build_cells(row) for row in self._rows]
        return sum(
            max(cell_len(text) for text in (head, *(str(line[head]) for line in cells))) + _GAP
            for head in heads
        )

    def _build_table(self, heads: Sequence[str], title_columns: int, name_columns: int) -> Table:
        """Build the table, without targets and loads if they have no columns."""
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="")
        for head in heads:
            table.add_column(head, no_wrap=True, justify="right" if head in _COUNT_HEADS else "left")
        if title_columns:
            table.add_column(_TITLE_HEAD, no_wrap=True, overflow="ellipsis", width=title_columns)
        table.add_column("name", no_wrap=True, overflow="ellipsis", width=name_columns)
        for row in self._rows:
            cells = _build_cells(row)
            line = [cells[head] for head in heads]
            table.add_row(*line, *([Text(row.title)] if title_columns else []), Text(row.name))
        return table

    @staticmethod
    def _find_widest(head: str, texts: Sequence[str]) -> int:
        return max(cell_len(text) for text in (head, *texts))


def build_runs_table(rows: Iterable[ListedRun], *, fits: bool = True) -> RenderableType:
    """Build the table, or a line on how to start the first run; to fit, it cuts long texts."""
    newest = sorted(rows, key=lambda row: row.created_at, reverse=True)
    if not newest:
        return Text("No runs yet. Start one with `oku run`.")
    table = RunsTable(newest, fits=fits)
    return Constrain(table, MOST_COLUMNS) if fits else table


def _build_cells(row: ListedRun) -> dict[str, Text]:
    """The cells of a run by the heads of their columns."""
    return {
        "run": Text(row.run, style=STRONG),
        "state": build_state(row.state, judge_counts(row.state, ok=row.ok, ended=row.accounted)),
        "requests": Text(format_requests(row.requests)),
        "accounted": Text(_format_accounted(row)),
        _OK: Text(format_share(row.ok, row.accounted) if row.accounted else NOTHING),
        "created": Text(format_date_minute(row.created_at)),
    }


def _format_accounted(row: ListedRun) -> str:
    """Format how much is accounted; where only a time ends the run, also in how much of it."""
    accounted = format_count(row.accounted)
    return f"{accounted} in {format_elapsed(row.active_s)}" if row.requests >= OPEN_END else accounted


def _build_block(row: ListedRun) -> Iterator[RenderableType]:
    run, state, requests, accounted, ok, created = _build_cells(row).values()
    yield Flow(run, state, gap=2, indent=2)
    if row.requests >= OPEN_END:
        extent = Flow(accounted, "accounted,", requests)
    else:
        extent = Flow(accounted, Text("of ").append_text(requests), "accounted")
    yield Padding(extent, (0, 0, 0, 2))
    if row.accounted:
        yield Padding(ok.append(" ok"), (0, 0, 0, 2))
    cut = [Text(text, no_wrap=True, overflow="ellipsis") for text in (row.title, row.name) if text]
    yield Padding(Group(Flow(created), *cut), (0, 0, 0, 2))
