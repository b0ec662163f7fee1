"""A run on the stack that another command started in the same folder.

If that command ends or is killed first, the run goes on: on a stack that this command starts, or on the stack
of another command that was faster.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.backends.data_dir import DataDir, FolderHeldError, RunningStack
from oku_cli.backends.ledger_backend import LedgerBackend
from oku_cli.exit_code import ExitCode
from oku_cli.follow.follower import Follower
from oku_cli.follow.run_start import RunStart, send_start
from oku_cli.follow.watch import Watch
from oku_cli.local.joined_commands import JoinedCommands, Membership
from oku_cli.local.run_end import EndedRun, wait_for_delivery
from oku_cli.local.stack_plan import StackPlan
from oku_cli.process.interrupt import Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints, describe_unbegun
from oku_cli.terminal.printable import write_note
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.process.supervision import cancel_tasks

_T = TypeVar("_T")
_POLL_S = 0.1


class _StackEndedError(Exception):
    """The stack has ended, and the run may not have."""


@dataclass
class JoinedRun:
    """A run of this command, on stacks of others.

    Attributes:
        start: begins the run, or goes on with it.
    """

    data_dir: DataDir
    plan: StackPlan
    start: RunStart
    watch: Watch
    interrupts: Interrupts

    async def carry_out(self) -> ExitCode | None:
        """Make the run on the stack of another command; None if no stack is left before the run has ended.

        A stack that has other settings, or cannot be reached from here, is waited for.
        """
        reported, wanted = "", self.plan.describe(self.data_dir.keep_message_key())
        while self.data_dir.is_held():
            stack = self.data_dir.read_stack()
            if stack is not None:
                if stack.shape.can_serve(wanted):
                    obstacle, code = await self._try(stack)
                    if code is not None:
                        return code
                else:
                    obstacle = f"process {stack.pid}, whose stack has other settings or delay servers"
                if obstacle and obstacle != reported:
                    reported = obstacle
                    write_note(f"waiting for {obstacle}")
            await self.interrupts.cut(asyncio.sleep(_POLL_S), describe_unbegun(self.start.resumed))
        return None

    async def _try(self, stack: RunningStack) -> tuple[str, ExitCode | None]:
        try:
            with JoinedCommands(self.data_dir.joined).join(self.plan.workers) as member:
                return "", await self._guard(stack, self._follow(stack, member))
        except _StackEndedError:
            if not self.start.can_repeat:
                raise UnreachableError(self._describe_unknown()) from None
            if self.interrupts.received is not None and self.start.resumed is not None:
                return "", await self._stop(self.start.resumed)
            write_note(f"process {stack.pid} has ended its stack")
            return "", None
        except UnreachableError as error:
            return f"the stack of process {stack.pid}: {error}", None

    def _describe_unknown(self) -> str:
        hints = InterruptHints(self.data_dir.flags)
        return hints.describe_unanswered(self.start.resumed)

    async def _guard(self, stack: RunningStack, work: Coroutine[Any, Any, _T]) -> _T:
        """Do `work`; raise `_StackEndedError` when the stack ends before."""
        working, ending = asyncio.create_task(work), asyncio.create_task(self._wait_for_end(stack))
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise _StackEndedError
            return await working
        finally:
            await cancel_tasks((working, ending))

    async def _wait_for_end(self, stack: RunningStack) -> None:
        while not self.data_dir.is_left_by(self.data_dir.build_endpoint(stack)):  # noqa: ASYNC110  # a lock ends without an event
            await asyncio.sleep(_POLL_S)

    async def _follow(self, stack: RunningStack, member: Membership) -> ExitCode:
        hints = InterruptHints(self.data_dir.flags, outlives=True)
        async with Client(self.data_dir.build_endpoint(stack)) as client:
            begun = await send_start(client, self.start, self.interrupts, hints, quiet=self.watch.quiet)
            self.start = self.start.go_on(begun.run)
            member.write(begun.run)
            follower = Follower(client, self.watch, hints, self.interrupts)
            summary = await follower.follow(begun.run, self.start.build_title(begun))
            if summary.state is RunState.PAUSED and summary.reason == ExpiryReason.STACK_LOST:
                raise _StackEndedError
            undelivered = await wait_for_delivery(client) if self.plan.has_loki else ""
        return await EndedRun(self.data_dir, self.watch, summary, undelivered).show(hints)

    async def _stop(self, run: str) -> ExitCode:
        """Carry out a signal that came while the stack ended."""
        ledger = LedgerBackend(self.data_dir)
        with suppress(FolderHeldError):  # the next stack has paused it
            ledger = LedgerBackend.settle(self.data_dir)
            if self.interrupts.received is SignalAction.CANCEL:
                with suppress(UserError):  # it is over already
                    await ledger.cancel(run)
        hints = InterruptHints(self.data_dir.flags, folder=self.data_dir.absolute)
        return await EndedRun(self.data_dir, self.watch, await ledger.fetch_summary(run)).show(hints)
