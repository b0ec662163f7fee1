"""`oku rm`: deletes runs, with all that is kept of them."""

from collections.abc import Sequence
from pathlib import Path

import click

from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.run_backend import find_run, open_backend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import GroupedCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.terminal.printable import write_error, write_line
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError


@click.command(name="rm", cls=GroupedCommand)
@run_argument("runs", states=REST_STATES, metavar="RUN...", nargs=-1, required=True)
@backend_options
def command(runs: Sequence[str], data_dir: Path, coordinator: CoordinatorRef | None) -> int:
    """Delete runs with their accounts, histories and reports.

    RUN is latest, an id, a name, or any unique part of an id. It must be over or paused. If one cannot be
    deleted, the others still are, and the exit code is 2.
    """
    return run_async(_delete(runs, data_dir, coordinator))


async def _delete(references: Sequence[str], data_dir: Path, coordinator: CoordinatorRef | None) -> ExitCode:
    code = ExitCode.COMPLETED
    async with open_backend(coordinator, data_dir) as backend:
        # All are found before the first is deleted: after that another run would be the latest.
        runs: dict[str, None] = {}
        for reference in references:
            try:
                runs[await find_run(backend, reference)] = None
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
        for run in runs:
            try:
                await backend.delete(run)
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
            else:
                write_line(f"run {run} is deleted")
    return code
