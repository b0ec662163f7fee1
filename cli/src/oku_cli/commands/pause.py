"""`oku pause`: lets a run come to rest."""

from pathlib import Path

import click

from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.run_backend import find_run, open_backend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import run_async
from oku_cli.options.backend_options import backend_options
from oku_cli.options.option_group import GroupedCommand
from oku_cli.options.run_argument import run_argument
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.terminal.printable import write_line
from oku_core.accounting.run_state import RunState


@click.command(name="pause", cls=GroupedCommand)
@run_argument(states=(RunState.PENDING, RunState.RUNNING))
@backend_options
def command(run: str, data_dir: Path, coordinator: CoordinatorRef | None) -> int:
    """Pause a run once its requests in flight have ended.

    RUN is latest, an id, a name, or any unique part of an id.
    """
    return run_async(_pause(run, data_dir, coordinator))


async def _pause(run: str, data_dir: Path, coordinator: CoordinatorRef | None) -> ExitCode:
    async with open_backend(coordinator, data_dir) as backend:
        run = await find_run(backend, run)
        state = await backend.pause(run)
    resume = InterruptHints(backend.flags).build_command("resume", run)
    write_line(f"run {run} is {state}; resume it with: {resume}")
    return ExitCode.COMPLETED
