"""Sends messages: leases and orders from the coordinator, checkpoints from the workers.

Each message is sealed with the key of the application and sent once. Nothing waits here for a broker that is
away: whoever sends repeats what has had no effect, and by then has something newer to say.
"""

from typing import Any

from kombu.exceptions import OperationalError

from oku_core.messaging.celery_app import (
    CHECKPOINT_TASK,
    CHECKPOINTS_QUEUE,
    LEASE_TASK,
    App,
    build_control_queue,
    build_lease_queue,
    build_orders_queue,
)
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import seal_checkpoints, seal_leases, seal_order
from oku_core.messaging.lease import LeaseBatch
from oku_core.messaging.order import Control, Intervals, Order, Stop

# A connection that has been idle since the broker was restarted is replaced at the first use.
_RECONNECT_ONCE = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0, "interval_max": 0.0}
_TRANSIENT = 1
"""Delivery mode of AMQP: a message to one process means nothing after a restart of the broker."""


def send_leases(app: App, batch: LeaseBatch) -> None:
    """Put leases into their worker's queue; raise kombu's `OperationalError` if the broker is unavailable."""
    app.send_task(
        LEASE_TASK,
        args=[seal_leases(app.signer, batch)],
        queue=build_lease_queue(batch.incarnation),
        declare=[],  # the worker declares it; if the worker is gone, its leases go nowhere
        delivery_mode=_TRANSIENT,
        **_TASK_OPTIONS,
    )


def send_checkpoints(app: App, batch: CheckpointBatch) -> None:
    """Put checkpoints into their queue; raise kombu's `OperationalError` if the broker is unavailable."""
    app.send_task(
        CHECKPOINT_TASK,
        args=[seal_checkpoints(app.signer, batch)],
        queue=CHECKPOINTS_QUEUE,
        **_TASK_OPTIONS,
    )


def send_order(app: App, order: Stop | Intervals) -> None:
    """Send an order to all workers; raise kombu's `OperationalError` if the broker is unavailable."""
    exchange = build_orders_queue("").exchange
    _publish(app, order, exchange=exchange.name, routing_key="", declare=[exchange])


def send_control(app: App, control: Control) -> None:
    """Send control to its worker; raise kombu's `OperationalError` if the broker is unavailable."""
    _publish(
        app,
        control,
        exchange="",
        routing_key=build_control_queue(control.incarnation).name,
        delivery_mode=_TRANSIENT,
    )


def _publish(app: App, order: Order, **options: Any) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        connection = producer.connection
        try:
            producer.publish(
                seal_order(app.signer, order),
                serializer="json",
                retry=True,
                retry_policy=_RECONNECT_ONCE,
                **options,
            )
        except (*connection.connection_errors, *connection.channel_errors) as error:
            raise OperationalError(str(error)) from error


_TASK_OPTIONS: dict[str, Any] = {
    "argsrepr": "",  # nobody reads it, and building it takes longer than encoding the message
    "kwargsrepr": "",
    "retry": True,
    "retry_policy": _RECONNECT_ONCE,
}
