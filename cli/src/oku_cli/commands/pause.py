"""`oku pause`: tells a running coordinator to stop dealing out a run."""

from pathlib import Path

import click

from oku_cli.client import Client
from oku_cli.data_dir import DataDir, Endpoint
from oku_cli.drive import build_hint, run_async
from oku_cli.exit_code import ExitCode
from oku_cli.options import build_endpoint, data_dir_option, remote_options
from oku_core.errors import UserError


@click.command(name="pause")
@click.argument("run")
@data_dir_option
@remote_options
def command(run: str, data_dir: Path, coordinator: str | None, token: str | None) -> int:
    """Let RUN finish what is in flight and rest; `oku resume` goes on."""
    folder = DataDir(data_dir)
    endpoint = build_endpoint(coordinator, token) or folder.find_endpoint()
    if endpoint is None:
        raise UserError(f"run {folder.require_run(run).run} is not running, there is nothing to pause")
    return run_async(_pause(endpoint, run))


async def _pause(endpoint: Endpoint, run: str) -> ExitCode:
    async with Client(endpoint) as client:
        document = await client.act(run, "pause")
    click.echo(f"run {run} is {document['state']}; go on with: {build_hint('resume', run)}")
    return ExitCode.COMPLETED
