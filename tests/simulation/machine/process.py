"""A simulated process: an event loop that can be killed, frozen and continued between any two steps.

All that a process does runs in its loop. A killed one runs nothing any more: no `finally`, no callback. What
it had in memory is kept until the simulation ends, so that the garbage collector does not run its code.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.scheduler import Runnable, Scheduler

_MOST_TASKS = 1000


class KilledError(BaseException):
    """The process is killed here, in the middle of what it does."""


class Process:
    """A process, and to asyncio its event loop, with as much of one as Oku uses.

    Args:
        name: as it stands in the story.
        scheduler: runs all processes.
        clock: of its machine.
        note_error: is told of each exception that nobody has caught.
    """

    current: Any = None
    """The process that runs now; None while the world itself acts."""

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        clock: MachineClock,
        note_error: Callable[["Process", BaseException | None, str], None],
    ) -> None:
        self.name = name
        self.clock = clock
        self.is_alive = True
        self.is_frozen = False
        self.on_kill: list[Callable[[], object]] = []
        """What the world does when the process is killed, such as breaking its connections."""
        self._scheduler = scheduler
        self._note_error = note_error
        self._kept: list[Runnable] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._steps_left: int | None = None

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let the process run a task."""
        return self.create_task(work)

    def kill(self) -> None:
        """Kill the process now; it does nothing any more."""
        if not self.is_alive:
            return
        self.is_alive = False
        self._kept.clear()
        for call in self.on_kill:
            call()

    def kill_after(self, steps: int) -> None:
        """Kill the process when it has taken so many further steps, wherever it is then."""
        self._steps_left = max(1, steps)

    def freeze(self) -> None:
        """Stop the process, as SIGSTOP does: its clocks go on."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Let a frozen process go on where it was."""
        self.is_frozen = False
        kept, self._kept = self._kept, []
        for due in kept:
            self._scheduler.push(self._scheduler.now, self, due)

    def run_due(self, due: Runnable) -> None:
        """Run what is due now, unless the process is killed or frozen."""
        if not self.is_alive or due.cancelled():
            return
        if self.is_frozen:
            self._kept.append(due)
            return
        if self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left < 0:
                self.kill()
                return
        self.enter(due._run)  # type: ignore[attr-defined]  # noqa: SLF001  # what event loops do with handles

    def enter(self, call: Callable[[], Any]) -> Any:
        """Call a function as this process."""
        before, Process.current = Process.current, self
        asyncio._set_running_loop(self._as_loop)  # noqa: SLF001  # what it is there for
        try:
            return call()
        finally:
            Process.current = before
            asyncio._set_running_loop(before and before._as_loop)  # noqa: SLF001

    def bury(self) -> None:
        """Let go of what the process had in memory, without running any of it."""
        self.is_alive = False
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # it was killed
        self._tasks.clear()
        self._kept.clear()

    def time(self) -> float:
        """What the monotonic clock of its machine shows."""
        return self.clock.monotonic()

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Call a function in this process, now but after all that is due now."""
        handle = asyncio.Handle(callback, args, self._as_loop, context)
        self._scheduler.push(self._scheduler.now, self, handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function after so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function when `time` shows this."""
        handle = asyncio.TimerHandle(when, callback, args, self._as_loop, context)
        self._scheduler.push(self.clock.find_true(when), self, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self._as_loop)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        """A task of this loop."""
        task = asyncio.Task(coro, loop=self._as_loop, name=name)
        self._tasks.append(task)
        if len(self._tasks) > _MOST_TASKS:
            self._tasks = [task for task in self._tasks if not task.done()]
        return task

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run what a thread would run: later, and in one go."""
        future = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001  # whoever waits gets it
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_soon(run)
        return future

    def get_debug(self) -> bool:
        """Whether asyncio is to look for mistakes."""
        return False

    def is_running(self) -> bool:
        """Whether the loop runs."""
        return self.is_alive

    def is_closed(self) -> bool:
        """Whether the loop was closed; it never is."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Take an exception that nobody has caught."""
        if self.is_alive:
            self._note_error(self, context.get("exception"), str(context.get("message")))

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Asyncio calls this; the handle is passed over when it is due."""

    @property
    def _as_loop(self) -> Any:
        return self
