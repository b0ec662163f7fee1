"""The heartbeat of a worker: its progress, once a second, or less often on request.

It has a thread of its own, so that a broker that is away holds nothing up. A worker whose event loop does not
answer sends nothing, and so counts as dead.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health, keep_going
from oku_workers.health.watchdogs import IdleWatchdog
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)

_LONGEST_INTERVAL_S = 60.0
LONGEST_PAUSE_S = 1.0
"""Between two attempts to connect: silence means death."""
_LOOP_TIMEOUT_S = 5.0
_INTERVALS_PER_QUEUE_LOOK = 5


class ProgressChannel(Protocol):
    """A connection for heartbeats."""

    def send(self, progress: Progress) -> None:
        """Send progress; raise an error of the transport if that fails."""

    def count_waiting(self) -> int:
        """Count the messages that the broker keeps for this process."""


OpenChannel = Callable[[], AbstractContextManager[ProgressChannel]]


class Heartbeat(threading.Thread):
    """Sends progress from `start` to `end`, through every loss of the broker.

    Args:
        open_channel: connects.
        runner: makes the progress, in that loop.
        watchdog: receives the number of messages that wait for this process.
        shortest_interval_s: between two heartbeats, unless the coordinator asks for a longer one.
    """

    def __init__(
        self,
        open_channel: OpenChannel,
        health: Health,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        watchdog: IdleWatchdog,
        shortest_interval_s: float = 1.0,
    ) -> None:
        super().__init__(name=health.name, daemon=True)
        self._open_channel = open_channel
        self._health = health
        self._loop_thread = loop_thread
        self._runner = runner
        self._watchdog = watchdog
        self._shortest_interval_s = self.interval_s = shortest_interval_s
        self._ending = threading.Event()
        self._urgent = threading.Event()

    def run(self) -> None:
        """Send heartbeats until `end` is called."""
        keep_going(self._health, self._send_while_connected, self._ending)

    def set_interval(self, interval_s: float) -> None:
        """Set the interval of progress: more than a second where there are many workers."""
        self.interval_s = min(max(interval_s, self._shortest_interval_s), _LONGEST_INTERVAL_S)

    def send_now(self) -> None:
        """Send the next heartbeat at once, for a coordinator that missed the ones before."""
        self._urgent.set()

    def end(self) -> None:
        """Send one last heartbeat and end."""
        self._ending.set()
        self._urgent.set()
        if self.is_alive():
            self.join(self._shortest_interval_s)

    def _send_while_connected(self) -> None:
        queue_look_s = _INTERVALS_PER_QUEUE_LOOK * self._shortest_interval_s
        next_look = time.monotonic() + queue_look_s
        self._watchdog.reset()
        with self._open_channel() as channel:
            next_heartbeat = time.monotonic()
            while True:
                is_last = self._ending.is_set()
                progress = self._take_progress()
                if progress is not None:
                    channel.send(progress)
                self._health.record_success()
                if is_last:
                    return
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + queue_look_s
                    self._watchdog.check(channel.count_waiting(), time.monotonic())
                next_heartbeat = max(next_heartbeat + self.interval_s, time.monotonic())
                if self._urgent.wait(next_heartbeat - time.monotonic()):
                    self._urgent.clear()
                    next_heartbeat = time.monotonic()

    def _take_progress(self) -> Progress | None:
        try:
            is_coarse = self.interval_s > self._shortest_interval_s
            found = self._runner.recorder.find_dead()
            return self._loop_thread.ask(
                lambda: self._runner.build_progress(coarse=is_coarse, found=found), _LOOP_TIMEOUT_S
            )
        except TimeoutError:
            _log.warning("the event loop has not answered for %.0f s", _LOOP_TIMEOUT_S)
            return None
