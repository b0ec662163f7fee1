"""`oku runs`: lists the runs of a data folder or of a coordinator elsewhere."""

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from oku_cli.client import Client, Place
from oku_cli.data_dir import DataDir
from oku_cli.drive import run_async
from oku_cli.exit_code import ExitCode
from oku_cli.options import data_dir_option, remote_options
from oku_cli.palette import CAUTION
from oku_cli.parting import Parting
from oku_cli.runs_view import RunRow, build_hints, build_runs_table
from oku_cli.terminal import Terminal
from oku_coordinator.api import build_run_object
from oku_core.run import RunState

_PIPE_COLUMNS = 10_000
"""Nothing is cut for a program that reads it."""


@click.command(name="runs")
@data_dir_option
@remote_options
def command(data_dir: Path, elsewhere: Place | None) -> int:
    """List the runs, newest first."""
    if elsewhere is not None:
        return run_async(_list_at(elsewhere))
    folder = DataDir(data_dir)
    ledger = folder.open_settled_ledger()
    runs = [build_run_object(record) for record in ledger.fetch_runs()] if ledger else []
    _show(runs, Parting(folder.flags))
    return ExitCode.COMPLETED


async def _list_at(place: Place) -> ExitCode:
    async with Client(place) as client:
        _show(await client.fetch_runs(), Parting(place.flags))
    return ExitCode.COMPLETED


def _show(runs: list[dict[str, Any]], parting: Parting) -> None:
    rows = [
        RunRow(
            run=run["run"],
            name=run["name"],
            state=RunState(run["state"]),
            requests=run["requests"],
            accounted=run["accounted"],
            created_at=datetime.fromisoformat(run["created_at"]).timestamp(),
            reason=run["reason"],
        )
        for run in runs
    ]
    console = Terminal()
    if not console.is_terminal:
        console.width = _PIPE_COLUMNS
    console.print(build_runs_table(rows, fits=console.is_terminal))
    if console.is_terminal:
        for hint in build_hints(rows, parting):
            console.print(hint, style=CAUTION, soft_wrap=True)
