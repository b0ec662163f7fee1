"""Keeps long-lived tasks and threads running: a failure is logged, shown as a notice, and retried.

The pauses between retries grow up to a bound, and of consecutive failures only the 1st, 2nd, 4th, 8th … are
logged, so that a task that always fails neither spins nor floods the log. Each task reports when it has
succeeded, which ends its notice.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from oku_core.process.clock import Clock
from oku_core.process.redaction import redact

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
STEADY_S = 60.0
"""A task that fails again within this time has not recovered, and its pauses keep growing."""
LONGEST_TROUBLE = 200
"""The longest description of a trouble, in characters; error messages can be long."""


class Health:
    """The health of one long-lived task. Any thread may use it.

    Args:
        name: the name of the task, as people read it.
        longest_pause_s: the longest pause before a retry.
        passing: errors with a cause outside the process that pass by themselves; they are logged without a
            traceback.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        longest_pause_s: float = LONGEST_PAUSE_S,
        passing: tuple[type[Exception], ...] = (OSError,),
        clock: Clock = time.monotonic,
    ) -> None:
        self.name = name
        self._longest_pause_s = longest_pause_s
        self._passing = passing
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0
        self.trouble = ""
        """Why the task does not work; empty while it works."""
        self.cause: Exception | None = None
        """The last failure of a task that has a trouble."""

    def record_success(self) -> None:
        """Record a success, which ends the trouble."""
        if self.trouble:
            self.trouble, self.cause = "", None
            if _is_power_of_two(self._failures):
                _log.info("%s: works again", self.name)

    def record_failure(self, error: Exception) -> float:
        """Record a failure, and return after how many seconds the task is to be retried."""
        now = self._clock()
        self._failures = self._failures + 1 if now - self._failed_at < STEADY_S else 1
        self._failed_at = now
        pause_s = min(FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 16), self._longest_pause_s)
        # The pause is left out, so that a notice does not change with each retry.
        self.trouble, self.cause = f"{self.name}: {describe_error(error)}", error
        if _is_power_of_two(self._failures):
            traceback = None if isinstance(error, self._passing) else error
            _log.error("%s; trying again in %.1f s", self.trouble, pause_s, exc_info=traceback)
        return pause_s


Work = Callable[[Health], Awaitable[None]]
"""A long-lived task: it runs until it is cancelled, or returns by itself."""


class Supervisor:
    """Supervises the tasks of one event loop and the threads beside it.

    Args:
        is_fatal: whether an error does not pass and must end the process; `wait` raises such errors.
        passing: errors that are logged without a traceback, as for `Health`.
        sleep: waits for some seconds; it may return early when the process is to end.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        is_fatal: Callable[[Exception], bool] = lambda _: False,
        passing: tuple[type[Exception], ...] = (OSError,),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._is_fatal = is_fatal
        self._passing = passing
        self._sleep = sleep
        self._clock = clock
        self._healths: dict[Health, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def troubles(self) -> list[str]:
        """Why tasks and threads do not work, one line for each that has a trouble."""
        return self.find_troubles()

    def find_troubles(self, besides: tuple[type[Exception], ...] = ()) -> list[str]:
        """The same, except for troubles caused by errors of these types, which something else reports."""
        return [
            health.trouble
            for health in tuple(self._healths)
            if health.trouble and not isinstance(health.cause, besides)
        ]

    def enlist(self, name: str, longest_pause_s: float = LONGEST_PAUSE_S) -> Health:
        """Build and watch the health of a thread, for `keep_going`, or of a task that retries by itself."""
        health = self.build_health(name, longest_pause_s)
        self._healths[health] = None
        return health

    def build_health(self, name: str, longest_pause_s: float = LONGEST_PAUSE_S) -> Health:
        """Build the health of a task that reports its trouble in another way."""
        return Health(name, longest_pause_s, self._passing, self._clock)

    def dismiss(self, health: Health) -> None:
        """Stop watching the health of a task that has ended normally."""
        self._healths.pop(health, None)

    def start(self, name: str, work: Work, longest_pause_s: float = LONGEST_PAUSE_S) -> asyncio.Task[None]:
        """Start a task in the running event loop; the caller may cancel it."""
        health = self.enlist(name, longest_pause_s)
        task = asyncio.get_running_loop().create_task(self._keep_going(health, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, task: asyncio.Task[None]) -> None:
        """Wait until a task has ended; raise a fatal error of any supervised task."""
        while not task.done():
            done, _ = await asyncio.wait({task, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                if not ended.cancelled():
                    ended.result()
        await task

    async def _keep_going(self, health: Health, work: Work) -> None:
        try:
            while True:
                try:
                    await work(health)
                except Exception as error:
                    if self._is_fatal(error):
                        raise
                    await self._sleep(health.record_failure(error))
                else:
                    return
        finally:
            self.dismiss(health)


def keep_going(health: Health, work: Callable[[], None], ending: threading.Event) -> None:
    """Repeat the work of a thread until `ending` is set, with a pause after each failure."""
    while not ending.is_set():
        try:
            work()
        except Exception as error:  # noqa: BLE001  # it is logged, and shown until the work succeeds
            if not ending.is_set():
                ending.wait(health.record_failure(error))


async def cancel_tasks(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks, and wait until they have ended."""
    living = [task for task in tasks if task is not None]
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)


def describe_error(error: Exception) -> str:
    """Describe an error in one line: its type and its message, without secrets."""
    said = "".join(char if char.isprintable() else " " for char in redact(str(error)))
    text = " ".join(f"{type(error).__name__}: {said}".split()).rstrip(": ")
    return text if len(text) <= LONGEST_TROUBLE else f"{text[: LONGEST_TROUBLE - 2]} …"


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
