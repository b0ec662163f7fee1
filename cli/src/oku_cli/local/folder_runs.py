"""Follows runs of a data folder in which other commands may start and end their stacks meanwhile.

The stack of another command ends with its run, or dies; the ledger stays. `oku wait` and `oku run --once` ask
here where a run is now, and ask again when that has changed.
"""

import asyncio
import time
from dataclasses import dataclass

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower, show_end
from oku_cli.follow.run_start import build_title, try_add_intervals
from oku_cli.follow.watch import Watch
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints
from oku_core.summary.summary import Summary

POLL_S = 0.2


@dataclass(frozen=True)
class Stack:
    """The stack of another command, as it runs in a folder."""

    folder: DataDir
    endpoint: Endpoint

    def has_ended(self) -> bool:
        """Whether it does not run there any more."""
        return self.folder.is_left_by(self.endpoint)


@dataclass(frozen=True)
class FolderRuns:
    """The runs of a folder.

    Attributes:
        folder: the folder.
        watch: says how to show a run.
        interrupts: the signals to this command.
    """

    folder: DataDir
    watch: Watch
    interrupts: Interrupts

    async def open(self, message: str, patience_s: float) -> tuple[LedgerBackend, Stack | None]:
        """The ledger of the folder, and the stack of another command if one runs there.

        Args:
            message: what a signal leaves behind meanwhile.
            patience_s: how long a stack may take to start or to end.

        Raises:
            FolderHeldError: it took longer.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                endpoint = self.folder.find_endpoint(patience_s=0.0)
                if endpoint is not None:
                    return LedgerBackend(self.folder), Stack(self.folder, endpoint)
                return LedgerBackend.settle(self.folder), None
            except FolderHeldError:
                if time.monotonic() > deadline:
                    raise
            await self.pause(message)

    async def pause(self, message: str) -> None:
        """Wait a moment before the folder is opened again."""
        await self.interrupts.cut(asyncio.sleep(POLL_S), message)

    async def follow(self, stack: Stack, known: Summary) -> Summary | None:
        """Follow a run on the stack of another command to its end; None if the stack ended before.

        Args:
            stack: that has the run.
            known: the summary of the run as it stands.
        """
        title = build_title(known.name or known.run, known.target, known.load)
        hints = InterruptHints(self.folder.flags, outlives=True)
        try:
            async with Client(stack.endpoint) as client:
                follower = Follower(client, self.watch, hints, self.interrupts, lifetime=stack)
                return await follower.follow(known.run, title, known=known)
        except UnreachableError:
            return None

    async def show_end(self, ledger: LedgerBackend, summary: Summary) -> ExitCode:
        """Show and write the summary of a run at rest; return the exit code."""
        hints = InterruptHints(self.folder.flags, folder=self.folder.absolute)
        return show_end(self.watch, await try_add_intervals(ledger, summary), hints)
