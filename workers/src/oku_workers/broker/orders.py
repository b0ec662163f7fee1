"""Messages of the broker: leases, and orders of the coordinator to all workers or to this one.

Leases come as messages of a Celery task. A message is acknowledged on intake. It is a hint: checkpoints
report the fate of its leases. Orders are received beside them, and handled if new.

Celery's own remote control is off. It would accept some forty commands from anyone who reaches the broker,
among them to shut down and to consume other queues, and would send replies wherever a command asks.
"""

import logging
import math
import time
from functools import partial
from typing import Any

from celery import bootsteps
from kombu.messaging import Consumer

from oku_core.broker.celery_app import LEASE_TASK, App, build_control_queue, build_orders_queue
from oku_core.broker.transport import read_json_body
from oku_core.messaging.codec import UnreadableLeasesError, decode_leases, decode_order
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Intervals, Order, Stop
from oku_core.messaging.signing import RejectedMessageError
from oku_core.process.clock import Clock
from oku_workers.broker.coordinator_link import CoordinatorLink
from oku_workers.health.heartbeat import Heartbeat
from oku_workers.health.watchdogs import IdleWatchdog
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread
from oku_workers.settings import WorkerIdentity

_log = logging.getLogger(__name__)

_INTERVAL_HOLDS_S = 60.0
"""A coordinator repeats the intervals every few seconds. After this long without one, any is taken:
the clock of a new coordinator may be behind its predecessor's."""


class LeaseTask:
    """Checks messages of leases, and hands them to the event loop; each call runs in a thread of Celery's."""

    def __init__(
        self, app: App, loop_thread: LoopThread, runner: LeaseRunner, watchdog: IdleWatchdog
    ) -> None:
        self._app = app
        self._loop_thread = loop_thread
        self._runner = runner
        self._watchdog = watchdog

    def register(self) -> None:
        """Have Celery call this for each message of leases."""

        @self._app.task(name=LEASE_TASK, shared=False)
        def take_leases(document: Any) -> None:
            self._receive(document)

    def _receive(self, document: Any) -> None:
        self._watchdog.record_message()
        try:
            batch = decode_leases(self._app.signer, document)
        except UnreadableLeasesError as error:
            _log.error("leases are refused: %s", error, extra={"run": error.head.run})
            self._loop_thread.ask(partial(self._runner.refuse, error.head, str(error)))
        except RejectedMessageError as error:
            self._app.reject(error)
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


def listen_to_orders(app: App, worker: WorkerIdentity, orders: Orders) -> None:
    """Have the Celery worker of an application listen to orders, over the connection that it has."""

    def receive(envelope: Any) -> None:
        try:
            order = decode_order(app.signer, read_json_body(envelope))
        except RejectedMessageError as error:
            app.reject(error)
        else:
            orders.handle(order)

    class OrderStep(bootsteps.ConsumerStep):  # type: ignore[misc]  # Celery has no types
        """Listens on each connection until it is lost."""

        def get_consumers(self, channel: Any) -> list[Consumer]:
            """The consumer of the orders to all, and of those to this process; called on each connection."""
            orders.link.on_connected()
            queues = [
                build_orders_queue(f"{worker.name}.{worker.incarnation}"),
                build_control_queue(worker.incarnation),
            ]
            return [Consumer(channel, queues, on_message=receive, no_ack=True, accept=["json"])]

        def stop(self, consumer: Any) -> None:
            """Cancel them, unless they are lost with their connection: Celery 5.7.0 would log an error."""
            if consumer.connection is not None:
                super().stop(consumer)

    app.steps["consumer"].add(OrderStep)
