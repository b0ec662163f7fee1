"""`oku cancel`: ends a run before its end, running or not."""

from pathlib import Path

import click

from oku_cli.backends.run_backend import open_backend
from oku_cli.backends.run_lookup import find_run
from oku_cli.exit_code import ExitCode
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import GroupedCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.remote.endpoint import CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import write_line
from oku_core.accounting.run_state import FINAL_STATES, RunState


@click.command(name="cancel", cls=GroupedCommand)
@run_argument(states=set(RunState) - FINAL_STATES)
@backend_options
def command(run: str, data_dir: Path, coordinator: CoordinatorRef | None) -> int:
    """End a run for good; what is accounted stays.

    Requests in flight may finish. RUN is latest, an id, a name, or any unique part of an id.
    """
    return run_async(_cancel(run, data_dir, coordinator))


async def _cancel(run: str, data_dir: Path, coordinator: CoordinatorRef | None) -> ExitCode:
    async with open_backend(coordinator, data_dir) as backend:
        run = await find_run(backend, run)
        write_line(f"run {run} is {await backend.cancel(run)}")
    return ExitCode.COMPLETED
