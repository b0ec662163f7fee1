"""Makes a run once for its key in a data folder: the ledger says what has become of the run that has it.

A run that another command makes there is followed; if that command dies, the run is resumed here.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.local.local_run import refuse_detaching, run_locally
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.remote.client import Client, RunDeletedError
from oku_cli.remote.endpoint import Endpoint, UnreachableError
from oku_cli.remote.follow import Follower, show_end
from oku_cli.remote.once import KeyNotice, finish_deleted
from oku_cli.remote.remote_run import RunStart, try_add_intervals
from oku_cli.remote.watch import Watch
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.errors import UserError
from oku_core.results.summary import Summary
from oku_core.spec.spec import Spec

_STARTS_S = 30.0
"""How long the stack of another command may take to start."""
_SUBMITS_S = 5.0
"""How long it may take then to submit the run with the key."""
_LOOK_S = 0.2


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
        """Make, resume or follow the run, or show its end.

        Raises:
            UserError: another run holds the folder, or SIGTERM is to detach the command.
        """
        refuse_detaching(self.watch)
        interrupts, notice = Interrupts(self.watch.on_sigterm), KeyNotice(self.keyed.key)
        held_since: float | None = None
        while True:
            try:
                if (code := await self._try(interrupts, notice)) is not None:
                    return code
                held_since = None
            except FolderHeldError:
                held_since = held_since or time.monotonic()
                if time.monotonic() - held_since > _SUBMITS_S:
                    raise
            await _rest(interrupts)

    async def _try(self, interrupts: Interrupts, notice: KeyNotice) -> ExitCode | None:
        """Do what the state of the run asks for; None if that has changed meanwhile."""
        endpoint = await self._find_endpoint(interrupts)
        ledger = LedgerBackend(self.data_dir) if endpoint else LedgerBackend.settle(self.data_dir)
        try:
            record = ledger.find_submitted(*self.keyed)
        except RunDeletedError as error:
            return finish_deleted(error.summary, self.watch, str(error))
        if record is None:
            return await run_locally(self.data_dir, self.plan, self.start, self.watch, interrupts)
        notice.report(record.run, record.state)
        if endpoint is not None and not record.is_at_rest:
            return await self._follow(endpoint, record.run, interrupts)
        if record.state in FINAL_STATES:
            return await self._finish(ledger, await ledger.fetch_summary(record.run))
        start = RunStart.resume(record.run, record.spec)
        return await run_locally(self.data_dir, self.plan, start, self.watch, interrupts)

    async def _find_endpoint(self, interrupts: Interrupts) -> Endpoint | None:
        """The stack of another command, which may just be starting; None if there is none."""
        deadline = time.monotonic() + _STARTS_S
        while True:
            try:
                return self.data_dir.find_endpoint(patience_s=0.0)
            except FolderHeldError:
                if time.monotonic() > deadline:
                    raise
            await _rest(interrupts)

    async def _follow(self, endpoint: Endpoint, run: str, interrupts: Interrupts) -> ExitCode | None:
        """Follow a run of another command; None if that has died and the run is to go on here."""
        async with Client(endpoint) as client:
            hints = InterruptHints(self.data_dir.flags, outlives=True)
            is_gone = partial(self.data_dir.is_left_by, endpoint)
            follower = Follower(client, self.watch, hints, interrupts, is_gone=is_gone)
            try:
                summary = await follower.follow(run, self.start.build_title(run))
            except UnreachableError:
                return await self._stop(run, interrupts.received) if interrupts.received else None
        return await self._finish(LedgerBackend(self.data_dir), summary)

    async def _stop(self, run: str, action: SignalAction) -> ExitCode:
        """End as a signal says that came while the other command died."""
        ledger = LedgerBackend.settle(self.data_dir)
        if action is SignalAction.CANCEL:
            with suppress(UserError):  # it is over already
                await ledger.cancel(run)
        return await self._finish(ledger, await ledger.fetch_summary(run))

    async def _finish(self, ledger: LedgerBackend, summary: Summary) -> ExitCode:
        hints = InterruptHints(self.data_dir.flags, folder=self.data_dir.absolute)
        return show_end(self.watch, await try_add_intervals(ledger, summary), hints)


async def _rest(interrupts: Interrupts) -> None:
    await interrupts.cut(asyncio.sleep(_LOOK_S), describe_unbegun(None))
