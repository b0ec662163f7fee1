"""Messages of the coordinator: leases, and orders to all workers or to this one, which are handled if new."""

import logging
import math
import time
from functools import partial

from oku_core.messaging.codec import UnreadableLeasesError
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Intervals, Order, Stop
from oku_core.messaging.signing import Reject, RejectedMessageError
from oku_core.process.clock import Clock
from oku_workers.broker.coordinator_link import CoordinatorLink, ReadLeases
from oku_workers.health.heartbeat import Heartbeat
from oku_workers.health.watchdogs import IdleWatchdog
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread

_log = logging.getLogger(__name__)

_INTERVAL_HOLDS_S = 60.0
"""A coordinator repeats the intervals every few seconds. After this long without one, any is taken:
the clock of a new coordinator may be behind its predecessor's."""


class LeaseReceiver:
    """Checks messages of leases, and hands them to the event loop."""

    def __init__(
        self, reject: Reject, loop_thread: LoopThread, runner: LeaseRunner, watchdog: IdleWatchdog
    ) -> None:
        self._reject = reject
        self._loop_thread = loop_thread
        self._runner = runner
        self._watchdog = watchdog

    def take(self, read: ReadLeases) -> None:
        """Take leases, or refuse those that cannot be read."""
        self._watchdog.record_message()
        try:
            batch = read()
        except UnreadableLeasesError as error:
            _log.error("leases are refused: %s", error, extra={"run": error.head.run})
            self._loop_thread.ask(partial(self._runner.refuse, error.head, str(error)))
        except RejectedMessageError as error:
            self._reject(error)
        else:
            # Waiting for the loop keeps messages in the broker while it is busy.
            self._loop_thread.ask(lambda: self._runner.accept(batch))


class Orders:
    """Obeys orders.

    Args:
        runner: has the leases, in that loop.
        link: learns when the coordinator speaks.
        watchdog: learns of orders to this worker alone; those to all come another way.
    """

    def __init__(
        self,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        heartbeat: Heartbeat,
        link: CoordinatorLink,
        watchdog: IdleWatchdog,
        clock: Clock = time.monotonic,
    ) -> None:
        self._loop_thread = loop_thread
        self._runner = runner
        self._heartbeat = heartbeat
        self.link = link
        self._watchdog = watchdog
        self._clock = clock
        self._interval_number = 0
        self._interval_set_at = -math.inf

    def handle(self, order: Order) -> None:
        """Carry out an order, without waiting until it is done."""
        if not isinstance(order, Stop | Intervals):
            self._watchdog.record_message()
        match order:
            case Stop():
                self._loop_thread.post(lambda: self._runner.stop(order))
            case Control():
                self._loop_thread.post(lambda: self._runner.control(order))
            case CallHook():
                self._loop_thread.post(lambda: self._runner.hooks.accept(order))
            case DropHooks():
                self._loop_thread.post(lambda: self._runner.hooks.drop(order))
            case Fetch():
                self._loop_thread.post(lambda: self._runner.fetch(order))
            case Intervals():
                self._set_intervals(order)

    def _set_intervals(self, order: Intervals) -> None:
        self._loop_thread.post(self._runner.on_heard)
        self.link.on_heard()
        now = self._clock()
        if order.number <= self._interval_number and now - self._interval_set_at < _INTERVAL_HOLDS_S:
            return
        if (clock := order.clock) is not None:
            self._loop_thread.post(lambda: self._runner.coordinator_clock.set_notice(clock))
        if (files := order.files) is not None:
            self._loop_thread.post(lambda: self._runner.set_files_address(files))
        if self._interval_number == 0:
            # The coordinator may have subscribed after this worker's first heartbeat.
            self._heartbeat.send_now()
        self._interval_number, self._interval_set_at = order.number, now
        self._heartbeat.set_interval(order.heartbeat_s)
        self._loop_thread.post(lambda: self._runner.set_checkpoint_interval(order.checkpoint_s))
        self._loop_thread.post(lambda: self._runner.set_current_run(order.run))
