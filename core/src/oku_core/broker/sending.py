"""Sends messages: leases and orders from the coordinator, checkpoints from the workers.

Each message is sealed with the key of the application. Nothing waits here for a broker that is away: senders
repeat messages without effect, with newer content.
"""

from collections.abc import Sequence
from typing import Any

from kombu.exceptions import BatchPublishError, OperationalError

from oku_core.broker.celery_app import (
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
from oku_core.messaging.order import CallHook, Control, DropHooks, Fetch, Order, Outbound

# A connection that has been idle since the broker was restarted is replaced at the first use.
_RECONNECT_ONCE = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0, "interval_max": 0.0}
_TRANSIENT = 1
"""Delivery mode of AMQP: a message to one process means nothing after a restart of the broker."""


def send_to_workers(app: App, messages: Sequence[Outbound]) -> None:
    """Send messages to workers; on Redis and Valkey they go together, in one round trip.

    A connection that has been idle since the broker was restarted is replaced. Messages may then come twice.

    Raises:
        OperationalError: the broker is unavailable; each of the messages may have arrived.
    """
    try:
        _send_together(app, messages)
    except OperationalError:
        _send_together(app, messages)


def send_checkpoints(app: App, batch: CheckpointBatch) -> None:
    """Put checkpoints into their queue; raise kombu's `OperationalError` if the broker is unavailable."""
    app.send_task(
        CHECKPOINT_TASK,
        args=[seal_checkpoints(app.signer, batch)],
        queue=CHECKPOINTS_QUEUE,
        retry=True,
        retry_policy=_RECONNECT_ONCE,
        **_TASK_OPTIONS,
    )


def _send_together(app: App, messages: Sequence[Outbound]) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        connection = producer.connection
        try:
            connection.ensure_connection(**_RECONNECT_ONCE)
            with producer.batch():
                for message in messages:
                    if isinstance(message, LeaseBatch):
                        _publish_leases(app, producer, message)
                    else:
                        _publish_order(app, producer, message)
        except (BatchPublishError, *connection.connection_errors, *connection.channel_errors) as error:
            raise OperationalError(str(error)) from error


def _publish_leases(app: App, producer: Any, batch: LeaseBatch) -> None:
    app.send_task(
        LEASE_TASK,
        args=[seal_leases(app.signer, batch)],
        queue=build_lease_queue(batch.incarnation),
        declare=[],  # the worker declares it; if the worker is gone, its leases go nowhere
        delivery_mode=_TRANSIENT,
        producer=producer,
        retry=False,
        **_TASK_OPTIONS,
    )


def _publish_order(app: App, producer: Any, order: Order) -> None:
    sealed = seal_order(app.signer, order)
    if isinstance(order, (Control, Fetch, CallHook, DropHooks)):
        queue = build_control_queue(order.incarnation).name
        producer.publish(sealed, serializer="json", exchange="", routing_key=queue, delivery_mode=_TRANSIENT)
    else:
        exchange = build_orders_queue("").exchange
        producer.publish(
            sealed, serializer="json", exchange=exchange.name, routing_key="", declare=[exchange]
        )


_TASK_OPTIONS: dict[str, Any] = {
    "argsrepr": "",  # no reader needs it, and building it takes longer than encoding the message
    "kwargsrepr": "",
}
