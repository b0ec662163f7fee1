"""`oku cancel`: ends a run before its end, running or not."""

from pathlib import Path

import click

from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.run_backend import find_run, open_backend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import GroupedCommand, OptionGroup, option
from oku_cli.options.run_argument import run_argument
from oku_cli.terminal.printable import write_line
from oku_core.accounting.run_state import FINAL_STATES, RunState


@click.command(name="cancel", cls=GroupedCommand)
@run_argument(states=set(RunState) - FINAL_STATES)
@backend_options
@option(
    OptionGroup.STOPPING,
    "--now",
    "at_once",
    is_flag=True,
    help="Drop requests in flight instead of letting them finish for up to --grace.",
)
def command(run: str, data_dir: Path, coordinator: CoordinatorRef | None, *, at_once: bool) -> int:
    """End a run for good; what is accounted stays.

    Requests in flight may finish, unless --now is given, also after a cancel without it. A run that waits
    for the teardown of its scenario waits no more. RUN is latest, an id, a name, or any unique part of an id.
    """
    return run_async(_cancel(run, data_dir, coordinator, at_once=at_once))


async def _cancel(run: str, data_dir: Path, coordinator: CoordinatorRef | None, *, at_once: bool) -> ExitCode:
    async with open_backend(coordinator, data_dir) as backend:
        run = await find_run(backend, run)
        write_line(f"run {run} is {await backend.cancel(run, at_once=at_once)}")
    return ExitCode.COMPLETED
