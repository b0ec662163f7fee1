"""Keeps long-lived tasks and threads going: what fails is logged, shown as a notice, and begun again.

The pauses between the beginnings grow up to a bound. Of failures in a row the 1st, 2nd, 4th, 8th … are
logged, so that what fails always neither spins nor fills the log. Each task says when a round of it went
well; its notice is over then.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable

from oku_core.process.redaction import redact

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
STEADY_S = 60.0
"""Whoever fails again within this time has not recovered: its pauses go on growing."""
LONGEST_TROUBLE = 200
"""Characters; what an error says may be long."""


class Health:
    """How one long-lived task fares. May be told and asked from any thread.

    Args:
        name: of the task, for people.
        longest_pause_s: between two beginnings.
        passing: errors that come from outside and pass by themselves: they are logged without a traceback.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        name: str,
        longest_pause_s: float = LONGEST_PAUSE_S,
        passing: tuple[type[Exception], ...] = (OSError,),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._longest_pause_s = longest_pause_s
        self._passing = passing
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0
        self.trouble = ""
        """Why it does not go on; empty as long as it does."""

    def note_well(self) -> None:
        """A round of it went well."""
        if self.trouble:
            self.trouble = ""
            if _is_power_of_two(self._failures):
                _log.info("%s: works again", self.name)

    def note_failure(self, error: Exception) -> float:
        """It has failed; says after how many seconds it is to begin again."""
        now = self._clock()
        self._failures = self._failures + 1 if now - self._failed_at < STEADY_S else 1
        self._failed_at = now
        pause_s = min(FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 16), self._longest_pause_s)
        # Without the pause: those who watch want to see one trouble, not one that changes.
        self.trouble = f"{self.name}: {describe_error(error)}"
        if _is_power_of_two(self._failures):
            traceback = None if isinstance(error, self._passing) else error
            _log.error("%s; trying again in %.1f s", self.trouble, pause_s, exc_info=traceback)
        return pause_s


Work = Callable[[Health], Awaitable[None]]
"""A long-lived task: goes on until it is cancelled, or returns when it is told to end."""


class Supervisor:
    """Supervises the tasks of one event loop and the threads beside it.

    Args:
        is_fatal: which errors end the process, because they do not pass: they are raised by `wait`.
        passing: those that need no traceback, as `Health` takes them.
        sleep: pauses, and may return early when all is to end.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        is_fatal: Callable[[Exception], bool] = lambda _: False,
        passing: tuple[type[Exception], ...] = (OSError,),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_fatal = is_fatal
        self._passing = passing
        self._sleep = sleep
        self._clock = clock
        self._healths: dict[Health, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def troubles(self) -> list[str]:
        """Why some of them do not go on, a line each."""
        return [health.trouble for health in tuple(self._healths) if health.trouble]

    def enlist(self, name: str, longest_pause_s: float = LONGEST_PAUSE_S) -> Health:
        """The health of a thread, for `keep_going`, or of what has a way of its own to begin again."""
        health = self.build_health(name, longest_pause_s)
        self._healths[health] = None
        return health

    def build_health(self, name: str, longest_pause_s: float = LONGEST_PAUSE_S) -> Health:
        """The health of what shows its trouble in another way."""
        return Health(name, longest_pause_s, self._passing, self._clock)

    def dismiss(self, health: Health) -> None:
        """What this is of has ended in order."""
        self._healths.pop(health, None)

    def start(self, name: str, work: Work) -> asyncio.Task[None]:
        """Start a task in the running event loop; whoever started it may cancel it."""
        task = asyncio.get_running_loop().create_task(self._keep_going(self.enlist(name), work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, task: asyncio.Task[None]) -> None:
        """Wait for the end of a task; raise what is fatal, whichever task it was raised in."""
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
                    await self._sleep(health.note_failure(error))
                else:
                    return
        finally:
            self.dismiss(health)


def keep_going(health: Health, work: Callable[[], None], ending: threading.Event) -> None:
    """Do the work of a thread until it is told to end, from the beginning after each failure."""
    while not ending.is_set():
        try:
            work()
        except Exception as error:  # noqa: BLE001  # it is logged, and shown until the work goes well again
            if not ending.is_set():
                ending.wait(health.note_failure(error))


async def cancel(tasks: Iterable[asyncio.Task[None] | None]) -> None:
    """Cancel tasks, and wait for their end."""
    living = [task for task in tasks if task is not None]
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)


def describe_error(error: Exception) -> str:
    """An error in one line: its kind, and what it says."""
    said = "".join(char if char.isprintable() else " " for char in redact(str(error)))
    text = " ".join(f"{type(error).__name__}: {said}".split()).rstrip(": ")
    return text if len(text) <= LONGEST_TROUBLE else f"{text[: LONGEST_TROUBLE - 2]} …"


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
