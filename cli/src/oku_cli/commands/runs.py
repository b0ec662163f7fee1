"""`oku runs`: lists the runs of a data folder or of a remote coordinator."""

from datetime import datetime
from typing import Any

import click

from oku_cli.backends.run_backend import RunPlace
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.option_group import GroupedCommand, OptionGroup, json_option, option
from oku_cli.options.run_options import place_options
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.console import CAUTION, Terminal
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_note
from oku_cli.views.runs_view import ListedRun, build_hints, build_runs_table
from oku_core.accounting.run_state import RunState

_PIPE_COLUMNS = 10_000
"""Nothing is cut for a program that reads it."""


@click.command(name="runs", cls=GroupedCommand)
@option(
    OptionGroup.OUTPUT,
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="List at most N.",
)
@option(OptionGroup.OUTPUT, "--all", "lists_all", is_flag=True, help="List all.")
@json_option("the list")
@place_options
@as_command
async def command(limit: int, place: RunPlace, *, lists_all: bool, as_json: bool) -> ExitCode:
    """List runs, newest first."""
    most = None if lists_all else limit
    async with place.open() as backend:
        runs = await backend.fetch_runs(None if most is None else most + 1)
    if as_json:
        print_json(runs[:most])
    else:
        _show(runs[:most], InterruptHints(backend.flags))
    if most is not None and len(runs) > most:
        write_note(f"these are the newest {most}; --all lists all of them")
    return ExitCode.COMPLETED


def _show(runs: list[dict[str, Any]], hints: InterruptHints) -> None:
    rows = [
        ListedRun(
            run=run["run"],
            name=run["name"],
            state=RunState(run["state"]),
            requests=run["requests"],
            accounted=run["accounted"],
            ok=run["ok"],
            created_at=datetime.fromisoformat(run["created_at"]).timestamp(),
            reason=run["reason"],
            load=run["load"],
            active_s=run["active_s"],
        )
        for run in runs
    ]
    console = Terminal()
    if not console.is_terminal:
        console.width = _PIPE_COLUMNS
    console.print(build_runs_table(rows, fits=console.is_terminal))
    if console.is_terminal:
        for hint in build_hints(rows, hints):
            console.print(hint, style=CAUTION, soft_wrap=True)
