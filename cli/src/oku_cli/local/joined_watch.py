"""What the command that keeps a stack does for the commands that have joined it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.local.joined_commands import JoinedCommands
from oku_cli.local.stack import LocalStack
from oku_cli.process.interrupt import Interrupts
from oku_cli.terminal.printable import write_note
from oku_core.errors import UserError
from oku_core.process.supervision import Health, Supervisor

_POLL_S = 0.1


@asynccontextmanager
async def serving_joined(stack: LocalStack, client: Client) -> AsyncIterator[JoinedCommands]:
    """Serve the joined commands for as long as the context lasts.

    The stack gets as many workers as any of them asks for. The run of a command that was killed is paused.
    """
    joined = JoinedCommands(stack.data_dir.joined)

    async def serve(health: Health) -> None:
        while True:
            health.record_success()
            alive = joined.list_alive()
            if alive:
                stack.grow(max(command.workers for command in alive))
            followed = {command.run for command in alive}
            for command in joined.remove_dead():
                if command.run and command.run not in followed:
                    stack.log(f"process {command.process} was killed, its run {command.run} is paused")
                    await _pause(client, command.run)
            await asyncio.sleep(_POLL_S)

    serving = Supervisor().start("joined commands", serve)
    try:
        yield joined
    finally:
        serving.cancel()


async def _pause(client: Client, run: str) -> None:
    with suppress(UserError, UnreachableError):  # it has ended; or it is paused when the stack ends
        await client.pause(run)


async def wait_for_joined(joined: JoinedCommands, interrupts: Interrupts) -> None:
    """Wait until no other command has a run on the stack, or a signal hands the stack over."""
    signalled = asyncio.create_task(interrupts.next_signal())
    shown: list[int] = []
    try:
        while alive := joined.list_alive():
            processes = sorted({command.process for command in alive})
            if processes != shown:
                shown = processes
                write_note(f"waiting for {_describe(processes)}; Ctrl-C hands the stack over")
            if (await asyncio.wait({signalled}, timeout=_POLL_S))[0]:
                return
    finally:
        signalled.cancel()


def _describe(processes: list[int]) -> str:
    if len(processes) == 1:
        return f"the run of process {processes[0]}"
    *first, last = map(str, processes)
    return f"the runs of processes {', '.join(first)} and {last}"
