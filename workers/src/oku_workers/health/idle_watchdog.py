"""Ends a worker that Celery has forgotten: it has no lease although leases wait, look after look."""

import logging
import os
from collections.abc import Callable

from oku_workers.health import EXIT_STUCK
from oku_workers.leases.lease_runner import LeaseRunner

_log = logging.getLogger(__name__)


class IdleWatchdog:
    """Judges what whoever calls it has seen.

    Args:
        runner: has the leases.
        limit_s: idle beside waiting leases for so long means stuck.
        exit_process: ends the process at once, with a code.
    """

    def __init__(
        self, runner: LeaseRunner, limit_s: float, exit_process: Callable[[int], object] = os._exit
    ) -> None:
        self._runner = runner
        self._limit_s = limit_s
        self._exit_process = exit_process
        self._idle_since: float | None = None

    def reset(self) -> None:
        """Begin anew: nothing could come while the broker was away."""
        self._idle_since = None

    def look(self, waiting: int, now: float) -> None:
        """One look: so many leases wait, at `now` in monotonic seconds."""
        is_idle = not (self._runner.lease_ids or self._runner.refused or self._runner.is_stopping)
        if not is_idle or waiting == 0:
            self._idle_since = None
            return
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since >= self._limit_s:
            _log.error("no lease has arrived although %d are waiting: ending, to be restarted", waiting)
            self._exit_process(EXIT_STUCK)
