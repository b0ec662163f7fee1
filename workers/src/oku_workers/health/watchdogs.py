"""Ends a worker that is stuck, so that it is restarted: its event loop hangs, or it receives no messages.

A thread of its own asks the loop again and again. It does not see other threads that are stuck: they hold no
other run up.

A worker is deaf if messages wait for it at every check, and none arrives. Celery's history knows workers that
stay connected to Redis and take nothing any more (#8030, #8091, #9054). Such a worker gets no lease, and its
leases get no higher limits.
"""

import logging
import os
import threading
from collections.abc import Callable

from oku_core.process.supervision import Health, keep_going
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)

EXIT_STUCK = 70
"""Exit code of a worker that is stuck and ends, to be restarted (EX_SOFTWARE of sysexits.h)."""
ExitProcess = Callable[[int], object]
"""Ends the process at once with a code, as `os._exit`."""
_ROUND_S = 1.0


class IdleWatchdog:
    """Compares the messages that have arrived with those that wait.

    Args:
        limit_s: how long a worker may receive nothing while messages wait.
        exit_process: ends the process at once, with a code.
    """

    def __init__(self, limit_s: float, exit_process: ExitProcess = os._exit) -> None:
        self._limit_s = limit_s
        self._exit_process = exit_process
        self._deaf_since: float | None = None
        self._has_heard = False

    def record_message(self) -> None:
        """A message has arrived by a queue in which others may wait; any thread may call this."""
        self._has_heard = True

    def reset(self) -> None:
        """Begin anew: nothing could come while the broker was away."""
        self._deaf_since = None

    def check(self, waiting: int, now: float) -> None:
        """Check whether any has arrived while some wait; `now` is in monotonic seconds."""
        has_heard, self._has_heard = self._has_heard, False
        if waiting == 0 or has_heard:
            self._deaf_since = None
            return
        if self._deaf_since is None:
            self._deaf_since = now
        if now - self._deaf_since >= self._limit_s:
            _log.error("no message has arrived although %d are waiting: ending, to be restarted", waiting)
            self._exit_process(EXIT_STUCK)


class LoopWatchdog(threading.Thread):
    """Watches from `start` to `end`; a loop that has not answered for `limit_s` is stuck."""

    def __init__(self, health: Health, loop_thread: LoopThread, limit_s: float) -> None:
        super().__init__(name=health.name, daemon=True)
        self._health = health
        self._loop_thread = loop_thread
        self._limit_s = limit_s
        self._ending = threading.Event()

    def run(self) -> None:
        """Ask, and ask again after a pause."""
        keep_going(self._health, self._watch, self._ending)

    def _watch(self) -> None:
        while not self._ending.is_set():
            answered = threading.Event()
            self._loop_thread.post(answered.set)
            if not self._wait(answered):
                return
            self._health.record_success()
            self._ending.wait(_ROUND_S)

    def end(self) -> None:
        """Watch no more; the loop may stop now."""
        self._ending.set()
        self.join(2 * _ROUND_S)

    def _wait(self, answered: threading.Event) -> bool:
        """Wait for an answer; False when there is no point in another question."""
        # Rounds are counted, not time: a process that was frozen has missed one of them, on any clock, and
        # its loop answers in the next.
        waited_s = 0.0
        while not answered.wait(_ROUND_S):
            waited_s += _ROUND_S
            if self._ending.is_set():
                return False
            if waited_s >= self._limit_s:
                _log.error(
                    "the event loop has not answered for %.0f s, it is at %s: ending, to be restarted",
                    waited_s, self._loop_thread.find_place(),
                )  # fmt: skip
                self._ending.set()
                os._exit(EXIT_STUCK)
                return False
        return True
