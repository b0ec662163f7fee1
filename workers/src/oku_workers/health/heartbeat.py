"""The beat of a worker: progress as a Celery event, once a second or less, and the check that it is of use.

A thread of its own, so that a broker that is away holds nothing up. A worker whose event loop does not
answer sends no event, and so counts as dead.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from oku_core.messaging.celery_app import LEASES_QUEUE, PROGRESS_EVENT, App, build_beat_transport_options
from oku_core.messaging.codec import seal_progress
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health, keep_going
from oku_workers.health.loop_thread import LoopThread
from oku_workers.leases.lease_runner import LeaseRunner

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_LONGEST_INTERVAL_S = 60.0
LONGEST_PAUSE_S = 1.0
"""Between two attempts to connect: silence means death."""
_LOOP_TIMEOUT_S = 5.0
_QUEUE_LOOK_S = 5.0
EXIT_STUCK = 70
"""Exit code of a worker that is stuck and ends, to be started anew (EX_SOFTWARE of sysexits.h)."""


class Heartbeat(threading.Thread):
    """See the module.

    Args:
        app: where events go.
        health: of this thread.
        station: the event loop.
        crew: who makes progress.
        idle_limit_s: idle for so long beside waiting leases means stuck.
        exit_process: ends the process at once, with a code.
    """

    def __init__(
        self,
        app: App,
        health: Health,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        idle_limit_s: float,
        exit_process: Callable[[int], None] = os._exit,
    ) -> None:
        super().__init__(name="beat", daemon=True)
        self._app = app
        self._health = health
        self._transport_options = build_beat_transport_options(app)
        self._loop_thread = loop_thread
        self._runner = runner
        self._ending = threading.Event()
        self._interval_s = _INTERVAL_S
        self._exit_process = exit_process
        self._idle = IdleWatch(idle_limit_s)

    def run(self) -> None:
        """Heartbeat until told to end, through every loss of the broker."""
        keep_going(self._health, self._send_while_connected, self._ending)

    def set_interval(self, interval_s: float) -> None:
        """Send progress so often from now on: less than once a second where there are many workers."""
        self._interval_s = min(max(interval_s, _INTERVAL_S), _LONGEST_INTERVAL_S)

    def end(self) -> None:
        """Send one last beat and end."""
        self._ending.set()
        self.join(_INTERVAL_S)

    def _send_while_connected(self) -> None:
        next_look = time.monotonic() + _QUEUE_LOOK_S
        self._idle.forgive()
        with self._app.connection_for_write(transport_options=self._transport_options) as connection:
            dispatcher = self._app.events.Dispatcher(connection, buffer_while_offline=False)
            next_heartbeat = time.monotonic()
            while True:
                is_last = self._ending.is_set()
                progress = self._take_progress()
                if progress is not None:
                    dispatcher.send(PROGRESS_EVENT, progress=seal_progress(self._app.signer, progress))
                self._health.note_well()
                if is_last:
                    return
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + _QUEUE_LOOK_S
                    self._end_if_stuck(_count_waiting(connection))
                next_heartbeat = max(next_heartbeat + self._interval_s, time.monotonic())
                self._ending.wait(next_heartbeat - time.monotonic())

    def _take_progress(self) -> Progress | None:
        try:
            is_coarse = self._interval_s > _INTERVAL_S
            return self._loop_thread.ask(
                lambda: self._runner.build_progress(coarse=is_coarse), _LOOP_TIMEOUT_S
            )
        except TimeoutError:
            _log.warning("the event loop has not answered for %.0f s", _LOOP_TIMEOUT_S)
            return None

    def _end_if_stuck(self, waiting: int) -> None:
        is_idle = not (self._runner.lease_ids or self._runner.refused or self._runner.is_stopping)
        if self._idle.is_stuck(is_idle=is_idle, waiting=waiting, now=time.monotonic()):
            _log.error("no lease came although %d wait: ending, to be started anew", waiting)
            self._exit_process(EXIT_STUCK)


def _count_waiting(connection: Any) -> int:
    try:
        return int(connection.default_channel.queue_declare(LEASES_QUEUE, passive=True).message_count)
    except connection.channel_errors:
        return 0  # on Redis an empty queue is none


class IdleWatch:
    """Judges whether a worker is stuck: idle beside waiting leases, at every look for a whole time.

    Args:
        limit_s: that time.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None

    def forgive(self) -> None:
        """Begin anew: nothing could come while the broker was away."""
        self._since = None

    def is_stuck(self, *, is_idle: bool, waiting: int, now: float) -> bool:
        """One look, at `now` in monotonic seconds."""
        if not is_idle or waiting == 0:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self._limit_s
