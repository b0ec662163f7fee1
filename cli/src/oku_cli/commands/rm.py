"""`oku rm`: deletes runs, with all that is kept of them."""

from collections.abc import Sequence
from pathlib import Path

import click

from oku_cli.backends.run_backend import open_backend
from oku_cli.exit_code import ExitCode
from oku_cli.options.backend_options import backend_options
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import write_error, write_line
from oku_core.errors import UserError


@click.command(name="rm")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@backend_options
def command(runs: Sequence[str], data_dir: Path, coordinator: CoordinatorRef | None) -> int:
    """Delete runs with their accounts, histories and reports.

    A run must be over or paused. If one cannot be deleted, the others still are, and the exit code is 2.
    """
    return run_async(_delete(tuple(dict.fromkeys(runs)), data_dir, coordinator))


async def _delete(runs: Sequence[str], data_dir: Path, coordinator: CoordinatorRef | None) -> ExitCode:
    code = ExitCode.COMPLETED
    async with open_backend(coordinator, data_dir) as backend:
        for run in runs:
            try:
                await backend.delete(run)
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
            else:
                write_line(f"run {run} is deleted")
    return code
