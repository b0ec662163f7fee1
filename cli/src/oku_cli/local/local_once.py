"""Makes a run once for its key in a data folder: the ledger says what has become of the run that has it.

A run that another command makes there is followed; if that command dies, the run is resumed here.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from oku_cli.backends.client import RunGoneError
from oku_cli.backends.data_dir import DataDir, FolderHeldError
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.run_start import KeyNotice, RunStart, finish_deleted
from oku_cli.follow.watch import Watch
from oku_cli.local.folder_runs import FolderRuns
from oku_cli.local.local_run import refuse_detaching, run_locally
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_cli.process.interrupt_hints import describe_unbegun
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.errors import UserError
from oku_core.spec.spec import Spec

_STARTS_S = 30.0
"""How long the stack of another command may take to start."""
_SUBMITS_S = 5.0
"""How long it may take then to submit the run with the key."""


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
        runs = FolderRuns(self.data_dir, self.watch, Interrupts(self.watch.on_sigterm))
        notice, held_since = KeyNotice(self.keyed.key), None
        while True:
            try:
                if (code := await self._try(runs, notice)) is not None:
                    return code
                held_since = None
            except FolderHeldError:
                held_since = held_since or time.monotonic()
                if time.monotonic() - held_since > _SUBMITS_S:
                    raise
            await runs.pause(describe_unbegun(None))

    async def _try(self, runs: FolderRuns, notice: KeyNotice) -> ExitCode | None:
        """Do what the state of the run asks for; None if that has changed meanwhile."""
        ledger, stack = await runs.open(describe_unbegun(None), _STARTS_S)
        try:
            record = ledger.find_submitted(*self.keyed)
        except RunGoneError as error:
            return finish_deleted(error.summary, self.watch, str(error))
        if record is None:
            return await run_locally(self.data_dir, self.plan, self.start, self.watch, runs.interrupts)
        notice.report(record.run, record.state)
        if stack is not None and not record.is_at_rest:
            summary = await runs.follow(stack, await ledger.fetch_summary(record.run))
            if summary is None:
                return await self._stop(runs, record.run) if runs.interrupts.received else None
            return await runs.show_end(ledger, summary)
        if record.state in FINAL_STATES:
            return await runs.show_end(ledger, await ledger.fetch_summary(record.run))
        start = RunStart.resume(record.run, record.spec)
        return await run_locally(self.data_dir, self.plan, start, self.watch, runs.interrupts)

    async def _stop(self, runs: FolderRuns, run: str) -> ExitCode:
        """End as a signal says that came while the other command died."""
        ledger = LedgerBackend.settle(self.data_dir)
        if runs.interrupts.received is SignalAction.CANCEL:
            with suppress(UserError):  # it is over already
                await ledger.cancel(run)
        return await runs.show_end(ledger, await ledger.fetch_summary(run))
