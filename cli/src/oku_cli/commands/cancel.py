"""`oku cancel`: ends a run before its end, running or not."""

import time
from pathlib import Path

import click

from oku_cli.exit_code import ExitCode
from oku_cli.local.data_dir import DataDir
from oku_cli.options.spec_options import data_dir_option, remote_options
from oku_cli.remote.client import Client, CoordinatorRef
from oku_cli.remote.follow import run_async
from oku_cli.terminal.printable import write_line
from oku_coordinator.ledger import Ledger
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.errors import UserError


@click.command(name="cancel")
@click.argument("run")
@data_dir_option
@remote_options
def command(run: str, data_dir: Path, elsewhere: CoordinatorRef | None) -> int:
    """End RUN for good; what is in flight may finish, what is accounted stays."""
    folder = DataDir(data_dir)
    place = elsewhere or folder.find_endpoint()
    if place is not None:
        return run_async(_cancel_at(place, run))
    folder.require_run(run)
    folder.hold()
    try:
        folder.park_interrupted(time.time())
        folder.change_ledger(lambda ledger: _cancel(ledger, run))
    except TransitionError as error:
        raise UserError(str(error)) from error
    finally:
        folder.release()
    write_line(f"run {run} is cancelled")
    return ExitCode.COMPLETED


def _cancel(ledger: Ledger, run: str) -> None:
    ledger.change_state(run, RunState.CANCELLED, time.time())


async def _cancel_at(place: CoordinatorRef, run: str) -> ExitCode:
    async with Client(place) as client:
        document = await client.act(run, "cancel")
    write_line(f"run {run} is {document['state']}")
    return ExitCode.COMPLETED
