"""Follows runs of a data folder in which other commands may start and end their stacks meanwhile.

The stack of another command ends with its run, or dies; the ledger stays. `oku wait` and `oku run --once` ask
here where a run is now, and ask again when that has changed. A run with a key is made once: one that another
command makes is followed, and resumed here if that command dies.
"""

import asyncio
import math
import time
from dataclasses import dataclass
from typing import NamedTuple

from oku_cli.backends.client import Client, RunGoneError
from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower, show_end
from oku_cli.follow.run_start import KeyNotice, RunStart, finish_deleted
from oku_cli.follow.watch import Watch
from oku_cli.local.local_run import refuse_detaching, run_locally
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.spec.spec import Spec
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
    """The runs of a folder, as a command shows them."""

    folder: DataDir
    watch: Watch
    interrupts: Interrupts

    async def open(self, message: str, patience_s: float) -> tuple[LedgerBackend, Stack | None]:
        """The ledger of the folder, and the stack of another command if one runs there.

        A stack has `patience_s` to start or to end; a signal meanwhile ends the command with the message.

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
        """Follow a run on the stack of another command to its end; None if the stack ended before."""
        hints = InterruptHints(self.folder.flags, outlives=True)
        try:
            async with Client(stack.endpoint) as client:
                follower = Follower(client, self.watch, hints, self.interrupts, lifetime=stack)
                return await follower.join(known)
        except UnreachableError:
            return None

    async def show_end(self, ledger: LedgerBackend, summary: Summary) -> ExitCode:
        """Show and write the summary of a run at rest; return the exit code."""
        hints = InterruptHints(self.folder.flags, folder=self.folder.absolute)
        return await show_end(self.watch, summary, ledger, hints)


class KeyedSpec(NamedTuple):
    """A spec that is sent once for its key, which outlives its run by `keep_keys_s`."""

    key: str
    spec: Spec
    keep_keys_s: float


@dataclass(frozen=True)
class LocalOnce:
    """A run that is made once for its key."""

    data_dir: DataDir
    plan: StackPlan
    start: RunStart
    keyed: KeyedSpec
    watch: Watch

    async def carry_out(self) -> ExitCode:
        """Make, resume or follow the run, or show its end.

        Raises:
            UserError: SIGTERM is to detach the command.
        """
        refuse_detaching(self.watch)
        runs = FolderRuns(self.data_dir, self.watch, Interrupts(self.watch.on_sigterm))
        ledger, _ = await runs.open(describe_unbegun(None), patience_s=math.inf)
        start = self.start
        try:
            record = ledger.find_submitted(*self.keyed)
        except RunGoneError as error:
            return await finish_deleted(error.summary, self.watch, str(error))
        if record is not None:
            KeyNotice(self.keyed.key).report(record.run, record.state)
            if record.state in FINAL_STATES:
                return await runs.show_end(ledger, await ledger.fetch_summary(record.run))
            start = start.go_on(record.run)
        return await run_locally(self.data_dir, self.plan, start, self.watch, runs.interrupts)
