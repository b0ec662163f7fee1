"""Follows a run until it rests, pauses or cancels it on a signal, and shows and writes its summary."""

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import UnreachableError
from oku_cli.comparison.run_seconds import Histories, add_intervals
from oku_cli.exit_code import ExitCode
from oku_cli.follow.outage import Outage
from oku_cli.follow.printed_view import PrintedView
from oku_cli.follow.watch import Watch
from oku_cli.process.interrupt import InterruptedAtOnceError, Interrupts, SignalAction
from oku_cli.process.interrupt_hints import InterruptHints, OrderDelivery
from oku_cli.terminal.json_output import print_json
from oku_cli.terminal.printable import write_error, write_note
from oku_cli.views.dashboard_link import build_live_link, build_summary_link
from oku_cli.views.exit_reasons import list_exit_reasons
from oku_core.accounting.run_state import REST_STATES
from oku_core.errors import UserError
from oku_core.process.supervision import cancel_tasks
from oku_core.summary.summary import Summary, is_unbalanced

if TYPE_CHECKING:
    from oku_cli.live.plain import View

_P = ParamSpec("_P")

ORDER_PATIENCE_S, ORDER_TRY_S = 1.0, 10.0
"""After a signal, a failure to reach the coordinator is reported after the first time; one response may take
the second."""
STANDSTILL_S = 8.0
"""After a signal, `oku` gives up on a coordinator that has not been ready for this long: it cannot stop the
run. Most supervisors send SIGKILL 10 s after SIGTERM."""
READINESS_POLL_S = 0.5


class Lifetime(Protocol):
    """Knows whether a coordinator that does not answer has ended for good."""

    def has_ended(self) -> bool:
        """Whether it will not answer again."""
        ...


class Follower:
    """Follows one run after the other, each until it rests.

    Args:
        lifetime: of the coordinator; None if it is waited for however long it does not answer.
    """

    def __init__(
        self,
        client: Client,
        watch: Watch,
        hints: InterruptHints,
        interrupts: Interrupts,
        *,
        lifetime: Lifetime | None = None,
    ) -> None:
        from oku_cli.live.live_view import build_view  # noqa: PLC0415  # rich takes long to load

        self._client = client
        self._watch = watch
        self._hints = hints
        self.view: View = build_view(watch.build_console(), quiet=watch.quiet)
        self._interrupts = interrupts
        self._lifetime = lifetime

    def log(self, line: str) -> None:
        """Show a line above the progress."""
        self.view.log(line)

    async def join(self, known: Summary) -> Summary:
        """Follow a run that another command has begun, and that stands as it is known to."""
        title = build_title(known.name or known.run, known.target, known.load, str(known.engine_choice))
        return await self.follow(known.run, title, known)

    async def follow(self, run: str, title: str, known: Summary | None = None) -> Summary:
        """Show a run until it rests; a signal pauses it, cancels it, or only ends the command.

        Raises:
            InterruptedAtOnceError: a second signal came, the run cannot come to rest, or it goes on alone.
            UnreachableError: the coordinator is gone.
        """
        self.view.start(title)
        self._show_dashboard(run, known)
        following = asyncio.create_task(self._follow(run))
        interrupting = asyncio.create_task(self._act_on_signal(run))
        try:
            await asyncio.wait({following, interrupting}, return_when=asyncio.FIRST_COMPLETED)
            if interrupting.done():
                await interrupting
            return await following
        finally:
            await cancel_tasks((following, interrupting))
            self.view.stop()

    async def finish(self, histories: Histories, summary: Summary) -> ExitCode:
        """Show and write the summary with its intervals; return the exit code."""
        return await show_end(self._watch, summary, histories, self._hints)

    def _show_dashboard(self, run: str, known: Summary | None) -> None:
        grafana, now = self._watch.grafana, time.time()
        if grafana is None or (known is not None and known.state in REST_STATES):
            return  # the summary has the link
        link = build_summary_link(grafana, known, now) if known else build_live_link(grafana, run, now)
        self.view.log(f"dashboard: {link}")

    async def _follow(self, run: str) -> Summary:
        outage, printed = Outage(self.view.warn, "the coordinator answers again"), PrintedView(self.view)
        while True:
            reason = "the coordinator ended the stream of ticks while the run goes on"
            try:
                async for item in self._client.follow(run):
                    outage.end()
                    printed.show(item.printed)
                    if isinstance(item, Summary):
                        printed.show_rest(item.printed)
                        return item
                    self.view.show_tick(item)
            except UnreachableError as error:
                if self._lifetime is not None and self._lifetime.has_ended():
                    raise
                # The stack restarts a dead coordinator; workers continue the run meanwhile.
                reason = str(error)
            await asyncio.sleep(outage.report(reason))

    async def _act_on_signal(self, run: str) -> None:
        action = await self._interrupts.next_signal()
        if action is SignalAction.DETACH:
            raise InterruptedAtOnceError(self._hints.describe_detached(run), action)
        self.view.log(self._hints.describe_first(run, action))
        ordering = asyncio.create_task(self._order(run, action))
        again = asyncio.create_task(self._interrupts.next_signal())
        standing = asyncio.create_task(self._find_standstill())
        try:
            await asyncio.wait({again, standing}, return_when=asyncio.FIRST_COMPLETED)
            obstacle = "" if again.done() else await standing
            delivery = ordering.result() if ordering.done() else OrderDelivery.OPEN
        finally:
            await cancel_tasks((ordering, again, standing))
        raise InterruptedAtOnceError(self._hints.describe_second(run, delivery, obstacle, action), action)

    async def _find_standstill(self) -> str:
        """Wait until the coordinator has not been ready for a while, and return why."""
        ready_at = time.monotonic()
        while True:
            obstacle = await self._client.find_obstacle()
            if not obstacle:
                ready_at = time.monotonic()
            elif time.monotonic() - ready_at >= STANDSTILL_S:
                return obstacle
            await asyncio.sleep(READINESS_POLL_S)

    async def _order(self, run: str, action: SignalAction) -> OrderDelivery:
        """Order the coordinator to pause or cancel a run, until it has answered."""
        tell = self._client.cancel if action is SignalAction.CANCEL else self._client.pause
        outage = Outage(self.view.warn, f"run {run} has been told to {action}", ORDER_PATIENCE_S)
        while True:
            try:
                async with asyncio.timeout(ORDER_TRY_S):
                    await tell(run)
            except (UnreachableError, TimeoutError) as error:
                reason = str(error) or f"no answer within {ORDER_TRY_S:g} s"
                await asyncio.sleep(outage.report(f"run {run} could not be told to {action}: {reason}"))
            except UserError as error:
                self.view.log(str(error))  # the run has come to rest by itself
                return OrderDelivery.REFUSED
            else:
                outage.end()
                return OrderDelivery.ACCEPTED


def build_title(*parts: str) -> str:
    """A title of its known parts."""
    return " · ".join(filter(None, parts))


async def try_add_intervals(histories: Histories, summary: Summary) -> Summary:
    """Add the intervals to the summary of a run that has ended, which is worth more than they are."""
    try:
        return await add_intervals(histories, summary)
    except (UnreachableError, UserError) as error:
        write_note(f"the summary has no intervals: {error}")
        return summary


async def show_end(
    watch: Watch, summary: Summary, histories: Histories | None = None, hints: InterruptHints | None = None
) -> ExitCode:
    """Show and write the summary of a run at rest with its intervals; return the exit code.

    There are no histories if the history of the run was deleted. Hints explain how to resume the run.
    """
    from oku_cli.views.summary_view import print_summary  # noqa: PLC0415  # rich takes long to load

    if histories is not None:
        summary = await try_add_intervals(histories, summary)
    hint = None
    if hints is not None:
        hint = hints.describe_resume(summary.run, summary.state, is_broken=is_unbalanced(summary))
    print_summary(watch.build_console(), summary, hint=hint)
    watch.print_dashboard_link(summary)
    if watch.as_json:
        print_json(summary)
    await watch.write_files(summary, histories)
    return find_exit_code(summary, allows_undecided=watch.allows_undecided)


def find_exit_code(summary: Summary, *, allows_undecided: bool = False) -> ExitCode:
    """Return the exit code of a command that followed a run until it rested."""
    reasons = list_exit_reasons(summary, allows_undecided=allows_undecided)
    return reasons[0].code if reasons else ExitCode.COMPLETED


def run_async(coroutine: Coroutine[Any, Any, ExitCode], watch: Watch | None = None) -> int:
    """Run a subcommand; an unreachable coordinator ends it with one line, also in the files of `watch`."""
    try:
        return int(asyncio.run(coroutine))
    except (UnreachableError, InterruptedAtOnceError) as error:
        reason = str(error)
    except KeyboardInterrupt:
        # Commands that begin or follow a run take the signals; the others only look, or are done.
        reason = "interrupted, nothing was started"
    write_error(reason)
    if watch is not None:
        watch.write_reason(ExitCode.CUT_SHORT, reason)
    return int(ExitCode.CUT_SHORT)


def as_command(subcommand: Callable[_P, Coroutine[Any, Any, ExitCode]]) -> Callable[_P, int]:
    """Make a coroutine function one that click can call."""

    @functools.wraps(subcommand)
    def call(*arguments: _P.args, **options: _P.kwargs) -> int:
        return run_async(subcommand(*arguments, **options))

    return call
