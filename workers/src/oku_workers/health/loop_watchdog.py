"""Ends a worker whose event loop is stuck, so that it is restarted.

A thread of its own asks the loop again and again. It does not see other threads that are stuck: they hold no
other run up.
"""

import logging
import os
import threading

from oku_core.process.supervision import Health, keep_going
from oku_workers.health import EXIT_STUCK, ExitProcess
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)

_ROUND_S = 1.0


class LoopWatchdog(threading.Thread):
    """Watches from `start` to `end`.

    Args:
        health: of this thread.
        loop_thread: the event loop.
        limit_s: a loop that has not answered for so long is stuck.
        exit_process: ends the process at once, with a code.
    """

    def __init__(
        self,
        health: Health,
        loop_thread: LoopThread,
        limit_s: float,
        exit_process: ExitProcess = os._exit,
    ) -> None:
        super().__init__(name=health.name, daemon=True)
        self._health = health
        self._loop_thread = loop_thread
        self._limit_s = limit_s
        self._exit_process = exit_process
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
            self._health.note_well()
            self._ending.wait(_ROUND_S)

    def end(self) -> None:
        """Watch no more; the loop may stop now."""
        self._ending.set()
        self.join(2 * _ROUND_S)

    def _wait(self, answered: threading.Event) -> bool:
        """Wait for an answer; False when there is no point in another question."""
        # Rounds are counted, not time: a process that was frozen has missed one of them, whatever the clock
        # says, and its loop answers in the next.
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
                self._exit_process(EXIT_STUCK)
                return False
        return True
