"""Makes a run once for its key in a data folder: the ledger says what has become of the run that has it.

A run that another command makes there is followed; if that command dies, the run is resumed here.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.local.local_run import run_locally
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts
from oku_cli.process.interrupt_hints import InterruptHints
from oku_cli.remote.client import Client, RunDeletedError
from oku_cli.remote.endpoint import Endpoint
from oku_cli.remote.follow import Follower, show_end
from oku_cli.remote.once import finish_deleted, report_known
from oku_cli.remote.remote_run import RunStart, try_add_intervals
from oku_cli.remote.watch import Watch
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.results.summary import Summary, is_unbalanced
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_coordinator.ledger.storage.records import RunRecord

_STARTS_S = 30.0
"""How long the stack of another command may take to start."""
_SUBMITS_S = 5.0
"""How long it may take then to submit the run with the key."""
_LOOK_S = 0.2
_LAST_WORD_S = 2.0
"""How long the last event of a stack may take that has ended."""


class KeyedSpec(NamedTuple):
    """A spec that is sent once.

    Args:
        key: the key.
        spec: the spec.
        keep_keys_s: how long the key is kept after the deletion of its run.
    """

    key: str
    spec: Spec
    keep_keys_s: float


@dataclass(frozen=True)
class LocalOnce:
    """A run that is made once for its key.

    Attributes:
        data_dir: the folder.
        plan: the shape of its stack.
        start: submits the run with the key.
        keyed: the key, and what is submitted with it.
        watch: says how to show the run.
    """

    data_dir: DataDir
    plan: StackPlan
    start: RunStart
    keyed: KeyedSpec
    watch: Watch

    async def carry_out(self) -> ExitCode:
        """Make, resume or follow the run, or show its end; `UserError` if another run holds the folder."""
        held_since: float | None = None
        while True:
            try:
                if (code := await self._try()) is not None:
                    return code
                held_since = None
            except FolderHeldError:
                held_since = held_since or time.monotonic()
                if time.monotonic() - held_since > _SUBMITS_S:
                    raise
            await asyncio.sleep(_LOOK_S)

    async def _try(self) -> ExitCode | None:
        """Do what the state of the run asks for; None if that has changed meanwhile."""
        endpoint = self.data_dir.find_endpoint(_STARTS_S)
        ledger = LedgerBackend(self.data_dir) if endpoint else LedgerBackend.settle(self.data_dir)
        try:
            record = ledger.find_submitted(*self.keyed)
        except RunDeletedError as error:
            return finish_deleted(error.summary, self.watch, str(error))
        if record is None:
            return await run_locally(self.data_dir, self.plan, self.start, self.watch)
        if endpoint is not None and not record.is_at_rest:
            return await self._follow(endpoint, record)
        report_known(record.run, self.keyed.key, record.state)
        if record.state in FINAL_STATES:
            return await self._finish(ledger, await ledger.fetch_summary(record.run))
        start = RunStart.resume(record.run, record.spec)
        return await run_locally(self.data_dir, self.plan, start, self.watch)

    async def _follow(self, endpoint: Endpoint, record: "RunRecord") -> ExitCode | None:
        """Follow a run of another command; None if that has died."""
        report_known(record.run, self.keyed.key, record.state)
        async with Client(endpoint) as client:
            hints = InterruptHints(self.data_dir.flags, outlives=True)
            follower = Follower(client, self.watch, hints, Interrupts())
            following = asyncio.create_task(follower.follow(record.run, self.start.build_title(record.run)))
            released = asyncio.create_task(self._wait_for_release())
            try:
                await asyncio.wait({following, released}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({following}, timeout=_LAST_WORD_S)
                if not following.done():
                    return None
                return await self._finish(LedgerBackend(self.data_dir), await following)
            finally:
                for task in (following, released):
                    task.cancel()
                await asyncio.gather(following, released, return_exceptions=True)

    async def _wait_for_release(self) -> None:
        while self.data_dir.is_held():  # noqa: ASYNC110  # a lock of another process is no event
            await asyncio.sleep(_LOOK_S)

    async def _finish(self, ledger: LedgerBackend, summary: Summary) -> ExitCode:
        hints = InterruptHints(self.data_dir.flags, folder=self.data_dir.absolute)
        hint = hints.describe_resume(summary.run, summary.state, is_broken=is_unbalanced(summary))
        return show_end(self.watch, await try_add_intervals(ledger, summary), hint)
