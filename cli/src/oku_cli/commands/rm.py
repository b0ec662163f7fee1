"""`oku rm`: deletes runs, with all that is kept of them."""

from collections.abc import Sequence
from pathlib import Path

import click

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.options.spec_options import data_dir_option, remote_options
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import write_error, write_line
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.records import RunInUseError
from oku_core.errors import UserError


@click.command(name="rm")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@data_dir_option
@remote_options
def command(runs: Sequence[str], data_dir: Path, elsewhere: CoordinatorRef | None) -> int:
    """Delete each RUN, which must be over or paused: its account, its history, its report.

    The exit code is 2 when one of them could not be deleted; the others are.
    """
    runs = tuple(dict.fromkeys(runs))
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    if place is not None:
        return run_async(_delete_at(place, runs))
    return _delete_here(folder, runs)


async def _delete_at(place: CoordinatorRef, runs: Sequence[str]) -> ExitCode:
    code = ExitCode.COMPLETED
    async with Client(place) as client:
        for run in runs:
            try:
                await client.delete(run)
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
            else:
                write_line(f"run {run} is deleted")
    return code


def _delete_here(folder: DataDir, runs: Sequence[str]) -> ExitCode:
    code = ExitCode.COMPLETED
    for run in runs:
        try:
            folder.require_run(run)
            _delete(folder, run)
        except (UserError, RunInUseError) as error:
            write_error(str(error))
            code = ExitCode.WRONG_INPUT
        else:
            write_line(f"run {run} is deleted")
    return code


def _delete(folder: DataDir, run: str) -> None:
    def clear(ledger: Ledger) -> None:
        ledger.begin_deletion(run)
        (folder.reports / f"{run}.html").unlink(missing_ok=True)
        while (left := ledger.find_deletion()) is not None:
            while ledger.delete_some(left):
                pass
        ledger.rebuild()
        while ledger.give_back():
            pass

    folder.hold()
    try:
        folder.change_ledger(clear)
    finally:
        folder.release()
