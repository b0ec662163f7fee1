"""`oku wait`: follows the run of another command until it rests, and returns its exit code."""

import math
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import click

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import CoordinatorRef
from oku_cli.backends.data_dir import DataDir
from oku_cli.backends.run_backend import RunPlace, find_run
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower, run_async
from oku_cli.follow.outage import try_again
from oku_cli.follow.watch import Watch
from oku_cli.options.option_group import JsonCommand
from oku_cli.options.run_options import place_options, run_argument
from oku_cli.options.watch_options import FILE_HINT, pick_watch, watch_options
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints
from oku_core.accounting.run_state import REST_STATES


@click.command(name="wait", cls=JsonCommand, file_hint=FILE_HINT)
@run_argument()
@place_options
@watch_options
def command(run: str, place: RunPlace, **options: Any) -> int:
    """Wait for a run to end, and end with its exit code.

    If the run is over or paused, the command ends at once. Ctrl-C and SIGTERM end only this command; the run
    goes on. RUN is latest, an id, a name, or any unique part of an id.
    """
    watch = pick_watch(options)
    with watch.explaining_mistakes():
        if place.coordinator is not None:
            return run_async(wait_remotely(run, place.coordinator, watch), watch)
        return run_async(wait_locally(run, place.folder, watch), watch)


async def wait_remotely(reference: str, coordinator: CoordinatorRef, watch: Watch) -> ExitCode:
    """Wait for a run of a coordinator, which may be restarted meanwhile.

    Raises:
        UnreachableError: it does not answer for long at first.
    """
    hints = InterruptHints(coordinator.flags, outlives=True)
    interrupts = Interrupts(SignalAction.DETACH, on_others=SignalAction.DETACH)
    unfound = _describe_unfound(reference)
    async with AsyncExitStack() as opened:
        connect = partial(opened.enter_async_context, Client(coordinator))
        client = await interrupts.cut(try_again(connect), unfound)
        # The id stays the same when another run gets the name.
        run = await interrupts.cut(try_again(lambda: find_run(client, reference, takes_newest=True)), unfound)
        known = await interrupts.cut(
            try_again(lambda: client.fetch_summary(run)), hints.describe_detached(run)
        )
        follower = Follower(client, watch, hints, interrupts)
        return await follower.finish(client, await follower.join(known))


async def wait_locally(reference: str, folder: DataDir, watch: Watch) -> ExitCode:
    """Wait for a run of a folder, whose stack may end meanwhile, or give way to another command's."""
    from oku_cli.local.folder_runs import FolderRuns  # noqa: PLC0415  # a remote run needs no ledger

    interrupts = Interrupts(SignalAction.DETACH, on_others=SignalAction.DETACH)
    runs, run, message = FolderRuns(folder, watch, interrupts), "", _describe_unfound(reference)
    while True:
        ledger, stack = await runs.open(message, patience_s=math.inf)
        run = run or await find_run(ledger, reference, takes_newest=True)
        message = InterruptHints(folder.flags).describe_detached(run)
        known = await ledger.fetch_summary(run)
        if stack is None or known.state in REST_STATES:
            return await runs.show_end(ledger, known)
        if (ended := await runs.follow(stack, known)) is not None:
            return await runs.show_end(ledger, ended)
        await runs.pause(message)


def _describe_unfound(reference: str) -> str:
    return f"interrupted, run {reference} has not been found yet"
