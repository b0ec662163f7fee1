"""Orders of the coordinator to all workers: received beside the leases, and obeyed if they are new.

Celery's own remote control is off. It would take some forty commands from whoever reaches the broker, among
them to shut down and to consume other queues, and would answer to wherever the command says.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from kombu.messaging import Consumer

from oku_core.messaging.celery_app import App, build_orders_queue
from oku_core.messaging.codec import decode_order
from oku_core.messaging.order import HeartbeatInterval, Order, Stop
from oku_core.messaging.rejection import RejectedMessageError
from oku_core.messaging.transport import read_json_body
from oku_workers.health.heartbeat import Heartbeat
from oku_workers.leases.lease_runner import LeaseRunner
from oku_workers.loop_thread import LoopThread

_INTERVAL_HOLDS_S = 60.0
"""A coordinator repeats the heartbeat interval every few seconds. After this long without one, any is taken:
the clock of a new coordinator may be behind that of the one before."""


class Orders:
    """Obeys orders.

    Args:
        loop_thread: the event loop.
        runner: has the leases, in that loop.
        heartbeat: sends progress.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        loop_thread: LoopThread,
        runner: LeaseRunner,
        heartbeat: Heartbeat,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop_thread = loop_thread
        self._runner = runner
        self._heartbeat = heartbeat
        self._clock = clock
        self._interval_number = 0
        self._interval_set_at = -math.inf

    def obey(self, order: Order) -> None:
        """Do as told."""
        if isinstance(order, Stop):
            self._loop_thread.ask(lambda: self._runner.stop(order))
        else:
            self._take_interval(order)

    def _take_interval(self, interval: HeartbeatInterval) -> None:
        now = self._clock()
        if interval.number <= self._interval_number and now - self._interval_set_at < _INTERVAL_HOLDS_S:
            return
        if self._interval_number == 0:
            # The coordinator may have begun to listen after this worker had said that it is here.
            self._heartbeat.hurry()
        self._interval_number, self._interval_set_at = interval.number, now
        self._heartbeat.set_interval(interval.interval_s)


def listen_to_orders(app: App, name: str, obey: Callable[[Order], None]) -> None:
    """Have the Celery worker of an application listen to orders, over the connection that it has.

    Args:
        app: the application.
        name: of the queue; no two processes may share one.
        obey: called with each order of the coordinator.
    """

    def take(envelope: Any) -> None:
        try:
            order = decode_order(app.signer, read_json_body(envelope))
        except RejectedMessageError as error:
            app.reject(error)
        else:
            obey(order)

    class OrderStep(bootsteps.ConsumerStep):  # type: ignore[misc]  # Celery has no types
        """Listens on each connection until it is lost."""

        def get_consumers(self, channel: Any) -> list[Consumer]:
            """The consumer of the orders."""
            queue = build_orders_queue(name)
            return [Consumer(channel, [queue], on_message=take, no_ack=True, accept=["json"])]

    app.steps["consumer"].add(OrderStep)
