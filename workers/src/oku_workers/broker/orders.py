"""Orders of the coordinator, to all workers or to this one: received beside the leases, and obeyed if new.

Celery's own remote control is off. It would take some forty commands from whoever reaches the broker, among
them to shut down and to consume other queues, and would answer to wherever the command says.
"""

import math
import time
from typing import Any

from celery import bootsteps
from kombu.messaging import Consumer

from oku_core.broker.celery_app import App, build_control_queue, build_orders_queue
from oku_core.broker.transport import read_json_body
from oku_core.messaging.codec import decode_order
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Intervals, Order, Stop
from oku_core.messaging.signing import RejectedMessageError
from oku_core.process.clock import Clock
from oku_workers.broker.coordinator_link import CoordinatorLink
from oku_workers.health.heartbeat import Heartbeat
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread
from oku_workers.settings import WorkerIdentity

_INTERVAL_HOLDS_S = 60.0
"""A coordinator repeats the intervals every few seconds. After this long without one, any is taken:
the clock of a new coordinator may be behind that of the one before."""


class Orders:
    """Obeys orders.

    Args:
        loop_thread: the event loop.
        runner: has the leases, in that loop.
        heartbeat: sends progress.
        link: learns when the coordinator speaks.
        clock: monotonic seconds.

    Attributes:
        count: how many orders to this worker alone have come. Those to all come another way.
    """

    def __init__(
        self,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        heartbeat: Heartbeat,
        link: CoordinatorLink,
        clock: Clock = time.monotonic,
    ) -> None:
        self._loop_thread = loop_thread
        self._runner = runner
        self._heartbeat = heartbeat
        self.link = link
        self._clock = clock
        self.count = 0
        self._interval_number = 0
        self._interval_set_at = -math.inf

    def handle(self, order: Order) -> None:
        """Do as told; nobody waits until it is done."""
        match order:
            case Stop():
                self._loop_thread.post(lambda: self._runner.stop(order))
            case Control():
                self.count += 1
                self._loop_thread.post(lambda: self._runner.control(order))
            case CallHook():
                self.count += 1
                self._loop_thread.post(lambda: self._runner.hooks.take(order))
            case DropHooks():
                self.count += 1
                self._loop_thread.post(lambda: self._runner.hooks.drop(order))
            case Fetch():
                self.count += 1
                self._loop_thread.post(lambda: self._runner.fetch(order))
            case Intervals():
                self._take_intervals(order)

    def _take_intervals(self, order: Intervals) -> None:
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
            # The coordinator may have begun to listen after this worker had said that it is here.
            self._heartbeat.send_now()
        self._interval_number, self._interval_set_at = order.number, now
        self._heartbeat.set_interval(order.heartbeat_s)
        self._loop_thread.post(lambda: self._runner.set_checkpoint_interval(order.checkpoint_s))
        self._loop_thread.post(lambda: self._runner.set_current_run(order.run))


def listen_to_orders(app: App, worker: WorkerIdentity, orders: Orders) -> None:
    """Have the Celery worker of an application listen to orders, over the connection that it has.

    Args:
        app: the application.
        worker: whom the orders are for.
        orders: obeys each order of the coordinator.
    """

    def take(envelope: Any) -> None:
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
            return [Consumer(channel, queues, on_message=take, no_ack=True, accept=["json"])]

        def stop(self, consumer: Any) -> None:
            """Cancel them, unless they are lost with their connection: Celery 5.7.0 would log an error."""
            if consumer.connection is not None:
                super().stop(consumer)

    app.steps["consumer"].add(OrderStep)
