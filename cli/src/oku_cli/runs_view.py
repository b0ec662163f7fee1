"""The runs of a ledger go in, the table of `oku runs` comes out, newest first."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from oku_cli.figures import format_count, format_moment
from oku_cli.palette import MOST_COLUMNS, STATE_STYLES, STRONG
from oku_cli.parting import Parting, describe_pause
from oku_core.run import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as it is listed; `created_at` is a Unix time."""

    run: str
    name: str
    state: RunState
    requests: int
    accounted: int
    created_at: float
    reason: str = ""


MOST_HINTS = 3
"""Of so many paused runs, the newest, it is said how to go on."""


def build_hints(rows: Iterable[RunRow], parting: Parting) -> list[str]:
    """What became of the newest runs that are paused, and how to go on with each."""
    paused = [row for row in rows if row.state is RunState.PAUSED]
    newest = sorted(paused, key=lambda row: row.created_at, reverse=True)[:MOST_HINTS]
    return [
        f"{row.run} {describe_pause(row.reason)}; {parting.describe_resume(row.run, row.state)}"
        for row in newest
    ]


def build_runs_table(rows: Iterable[RunRow], *, fits: bool = True) -> RenderableType:
    """A line for each run, or one that says how to make the first.

    Args:
        rows: the runs.
        fits: whether long names are cut so that a line fits on the screen.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), expand=fits, header_style="")
    table.add_column("run", no_wrap=True, style=STRONG)
    table.add_column("state", no_wrap=True)
    table.add_column("requests", no_wrap=True, justify="right")
    table.add_column("accounted", no_wrap=True, justify="right")
    table.add_column("created", no_wrap=True)
    table.add_column("name", no_wrap=True, overflow="ellipsis", ratio=1 if fits else None)
    for row in sorted(rows, key=lambda row: row.created_at, reverse=True):
        table.add_row(
            Text(row.run),
            Text(row.state, style=STATE_STYLES[row.state]),
            format_count(row.requests),
            format_count(row.accounted),
            format_moment(row.created_at),
            Text(row.name),
        )
    if not table.row_count:
        return Text("No runs yet. `oku run` makes the first.")
    return Constrain(table, MOST_COLUMNS) if fits else table
