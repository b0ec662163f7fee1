"""Ends a worker that hears nothing any more: messages wait for it, look after look, and none arrives.

Celery's history knows workers that stay connected to Redis and take nothing any more (#8030, #8091, #9054).
Such a worker gets no lease, and no leave to go on with those that it has.
"""

import logging
import os
from collections.abc import Callable

from oku_workers.health import EXIT_STUCK, ExitProcess

_log = logging.getLogger(__name__)


class IdleWatchdog:
    """Judges what whoever calls it has seen.

    Args:
        count_heard: how many messages have arrived so far by the queues in which others wait.
        limit_s: deaf beside waiting messages for so long means stuck.
        exit_process: ends the process at once, with a code.
    """

    def __init__(
        self,
        count_heard: Callable[[], int],
        limit_s: float,
        exit_process: ExitProcess = os._exit,
    ) -> None:
        self._count_heard = count_heard
        self._limit_s = limit_s
        self._exit_process = exit_process
        self._deaf_since: float | None = None
        self._heard = 0

    def reset(self) -> None:
        """Begin anew: nothing could come while the broker was away."""
        self._deaf_since = None

    def check(self, waiting: int, now: float) -> None:
        """Check whether any has arrived while some wait; `now` is in monotonic seconds."""
        heard, self._heard = self._heard, self._count_heard()
        if waiting == 0 or self._heard != heard:
            self._deaf_since = None
            return
        if self._deaf_since is None:
            self._deaf_since = now
        if now - self._deaf_since >= self._limit_s:
            _log.error("no message has arrived although %d are waiting: ending, to be restarted", waiting)
            self._exit_process(EXIT_STUCK)
