"""`oku pause`, `oku cancel` and `oku rm`: they let a run come to rest, end it, or delete it."""

from collections.abc import Sequence

import click

from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import as_command
from oku_cli.options.option_group import GroupedCommand, OptionGroup, option
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.printable import write_error, write_line
from oku_core.accounting.run_state import FINAL_STATES, REST_STATES, RunState
from oku_core.errors import UserError


@click.command(name="pause", cls=GroupedCommand)
@run_argument(states=(RunState.PENDING, RunState.RUNNING))
@place_options
@as_command
async def pause(run: str, place: RunPlace) -> ExitCode:
    """Pause a run once its requests in flight have ended.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    async with place.open() as backend:
        run = await find_run(backend, run)
        state = await backend.pause(run)
    resume = InterruptHints(backend.flags).build_command("resume", run)
    write_line(f"run {run} is {state}; resume it with: {resume}")
    return ExitCode.COMPLETED


@click.command(name="cancel", cls=GroupedCommand)
@run_argument(states=set(RunState) - FINAL_STATES)
@place_options
@option(
    OptionGroup.STOPPING,
    "--now",
    "at_once",
    is_flag=True,
    help="Drop requests in flight instead of letting them finish for up to --grace.",
)
@as_command
async def cancel(run: str, place: RunPlace, *, at_once: bool) -> ExitCode:
    """End a run for good; its account stays.

    Requests in flight may finish, unless --now is given, also after a cancel without it. A run that waits
    for the teardown of its scenario waits no more. RUN is latest, an id, a name, or any unique part of an id.
    """
    async with place.open() as backend:
        run = await find_run(backend, run)
        write_line(f"run {run} is {await backend.cancel(run, at_once=at_once)}")
    return ExitCode.COMPLETED


@click.command(name="rm", cls=GroupedCommand)
@run_argument("runs", states=REST_STATES, metavar="RUN...", nargs=-1, required=True)
@place_options
@as_command
async def delete(runs: Sequence[str], place: RunPlace) -> ExitCode:
    """Delete runs with their accounts, histories and reports.

    RUN is latest, an id, a name, or any unique part of an id. It must be over or paused. If one cannot be
    deleted, the others still are, and the exit code is 2.
    """
    code = ExitCode.COMPLETED
    async with place.open() as backend:
        # All are found before the first is deleted: after that another run would be the latest.
        found: dict[str, None] = {}
        for reference in runs:
            try:
                found[await find_run(backend, reference)] = None
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
        for run in found:
            try:
                await backend.delete(run)
            except UserError as error:
                write_error(str(error))
                code = ExitCode.WRONG_INPUT
            else:
                write_line(f"run {run} is deleted")
    return code
