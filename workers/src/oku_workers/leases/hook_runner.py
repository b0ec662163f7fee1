"""Calls the hooks that the coordinator orders, and repeats their results until it drops them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import LONGEST_HOOK_ERROR, LONGEST_HOOK_TRACEBACK, HookAttempt, HookReport
from oku_core.messaging.order import CallHook, DropHooks
from oku_core.process.clock import SteadyClock
from oku_core.process.redaction import redact
from oku_core.process.supervision import cancel_tasks
from oku_core.spec.spec import Hook, Spec
from oku_core.user_code.messages import Returned
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineError
from oku_workers.engines.user_code.hook_caller import HostLostError
from oku_workers.leases.checkpointer import CheckpointSink
from oku_workers.runs.engine_switch import EngineSwitch
from oku_workers.settings import WorkerIdentity

_log = logging.getLogger(__name__)

HookCaller = Callable[[HookAttempt, Spec, EngineContext, float], Awaitable[Returned]]
"""As `call_hook`."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 10.0
"""The pause between two reports of one attempt."""
_MOST_REMEMBERED = 64


class HookRunner:
    """Has attempts at hooks in hand; belongs to the thread of the event loop.

    Args:
        worker: whose they are.
        engines: have the files and secrets of specs.
        sink: gives messages to the broker.
        clock: Unix time, as in progress.
        call: calls a hook; a simulation has its own.
    """

    def __init__(
        self,
        worker: WorkerIdentity,
        engines: EngineSwitch,
        sink: CheckpointSink,
        clock: SteadyClock,
        call: HookCaller,
    ) -> None:
        self._worker = worker
        self._engines = engines
        self._sink = sink
        self._clock = clock
        self._call = call
        self._held: dict[HookAttempt, asyncio.Task[None]] = {}
        """The task of each attempt, which calls the hook and then reports the result."""
        self._newest: dict[tuple[str, Hook], int] = {}
        """The highest attempt of each hook received so far; it and lower ones are not started again."""
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def attempts(self) -> list[HookAttempt]:
        """The attempts that are under way or still report their result."""
        return list(self._held)

    def accept(self, order: CallHook) -> None:
        """Call a hook, unless it was ordered before."""
        attempt = order.attempt
        if order.incarnation != self._worker.incarnation or self._clock.now() > order.start_by:
            return
        if not self._engines.is_fresh_for(attempt.run) or not self._remember(attempt):
            return
        task = asyncio.get_running_loop().create_task(self._carry_out(order))
        self._held[attempt] = task
        task.add_done_callback(lambda _: self._held.pop(attempt, None))

    def drop(self, order: DropHooks) -> None:
        """Forget attempts, and kill their hooks that are still running."""
        if order.incarnation != self._worker.incarnation:
            return
        for attempt in order.attempts:
            self._remember(attempt)
            if (task := self._held.pop(attempt, None)) is not None:
                self._end(task)

    def drop_all(self) -> None:
        """End every attempt: this process is about to leave, and another worker gets them."""
        while self._held:
            _, task = self._held.popitem()
            self._end(task)

    async def close(self) -> None:
        """End every attempt, and wait until their processes are gone."""
        self.drop_all()
        await cancel_tasks(self._ending)

    def _remember(self, attempt: HookAttempt) -> bool:
        """Remember an attempt; whether it is newer than all received before."""
        hook = (attempt.run, attempt.hook)
        newest = self._newest.pop(hook, 0)
        self._newest[hook] = max(newest, attempt.number)
        while len(self._newest) > _MOST_REMEMBERED:
            del self._newest[next(iter(self._newest))]
        return attempt.number > newest

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _carry_out(self, order: CallHook) -> None:
        attempt = order.attempt
        _log.info("%s is called", attempt, extra={"run": attempt.run})
        report = await self._try(order)
        level = logging.WARNING if report.error else logging.INFO
        _log.log(level, "%s %s", attempt, report.error or "has returned", extra={"run": attempt.run})
        await self._keep_telling(report)

    async def _try(self, order: CallHook) -> HookReport:
        attempt = order.attempt
        try:
            context, spec = await self._engines.prepare_call(order)
        except EngineError as error:
            return _build_report(attempt, Returned(error=str(error)), is_lost=True)
        try:
            return _build_report(attempt, await self._call(attempt, spec, context, order.limit_s))
        except HostLostError as error:
            return _build_report(attempt, Returned(error=str(error)), is_lost=True)
        except EngineError as error:
            return _build_report(attempt, Returned(error=str(error)))
        except Exception as error:  # noqa: BLE001  # it is logged and reported
            _log.exception("%s could not be called", attempt, extra={"run": attempt.run})
            return _build_report(attempt, Returned(error=f"{type(error).__name__}: {error}"), is_lost=True)
        finally:
            self._engines.sources.release(attempt)

    async def _keep_telling(self, report: HookReport) -> None:
        """Report the result of an attempt until it is dropped: messages and answers may be lost."""
        pause_s = _FIRST_PAUSE_S
        while True:
            batch = CheckpointBatch(
                worker=self._worker.name,
                incarnation=self._worker.incarnation,
                checkpoints=[],
                hooks=[report],
                printed=self._engines.slot.output.find(report.attempt.run),
            )
            try:
                await self._sink.send(batch)
            except Exception as error:  # noqa: BLE001  # the broker is away; the report is repeated
                _log.warning("what came of %s cannot be told yet: %s", report.attempt, error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _build_report(attempt: HookAttempt, returned: Returned, *, is_lost: bool = False) -> HookReport:
    """The report of what a hook returned; user code may have written anything into it."""
    error = " ".join(redact(returned.error).split())  # this process may have written it as well
    report = HookReport(
        attempt=attempt,
        value=returned.value,
        error="".join(char if char.isprintable() else "?" for char in error)[:LONGEST_HOOK_ERROR],
        traceback=returned.traceback[-LONGEST_HOOK_TRACEBACK:],
        is_lost=is_lost,
    )
    fault = report.find_fault()
    return report if fault is None else HookReport(attempt=attempt, error=fault[:LONGEST_HOOK_ERROR])
