"""`oku pause`: tells a running coordinator to stop dealing out a run."""

from pathlib import Path

import click

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.options.spec_options import data_dir_option, remote_options
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import write_line
from oku_core.errors import UserError


@click.command(name="pause")
@click.argument("run")
@data_dir_option
@remote_options
def command(run: str, data_dir: Path, elsewhere: CoordinatorRef | None) -> int:
    """Let RUN finish what is in flight and rest; `oku resume` goes on."""
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    if place is None:
        raise UserError(f"run {folder.require_run(run).run} is not running, there is nothing to pause")
    return run_async(_pause(place, run, InterruptHints((elsewhere or folder).flags)))


async def _pause(place: CoordinatorRef, run: str, parting: InterruptHints) -> ExitCode:
    async with Client(place) as client:
        document = await client.act(run, "pause")
    write_line(f"run {run} is {document['state']}; go on with: {parting.build_command('resume', run)}")
    return ExitCode.COMPLETED
