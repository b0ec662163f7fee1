"""Sends messages: leases and orders from the coordinator, checkpoints from the workers.

Each message is sealed with the key of the application. How long a sender retries depends on whether the
message is still useful later.
"""

from typing import Any

from kombu.entity import Exchange, Queue
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
from oku_core.messaging.order import Control, Intervals, Stop


def send_leases(app: App, batch: LeaseBatch) -> None:
    """Put leases into their worker's queue; raise kombu's `OperationalError` if the broker is unavailable."""
    queue = build_lease_queue(batch.incarnation)
    _send(app, LEASE_TASK, queue, seal_leases(app.signer, batch), retries=0)


def send_checkpoints(app: App, batch: CheckpointBatch) -> None:
    """Put checkpoints into their queue; raise kombu's `OperationalError` if the broker is unavailable.

    There is no retry: the sender repeats what is not confirmed, and by then has something newer.
    """
    _send(app, CHECKPOINT_TASK, CHECKPOINTS_QUEUE, seal_checkpoints(app.signer, batch), retries=0)


def send_order(app: App, order: Stop | Intervals) -> None:
    """Send an order to all workers; raise kombu's `OperationalError` if the broker is unavailable.

    There is no retry: an order that arrives after it has become obsolete is worse than none.
    """
    _publish(app, seal_order(app.signer, order), build_orders_queue("").exchange, routing_key="")


def send_control(app: App, control: Control) -> None:
    """Send control to its worker; raise kombu's `OperationalError` if the broker is unavailable."""
    queue = build_control_queue(control.incarnation)
    _publish(app, seal_order(app.signer, control), queue.exchange, queue.routing_key, queue)


def _publish(
    app: App, sealed: dict[str, Any], exchange: Exchange, routing_key: str, queue: Queue | None = None
) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        connection = producer.connection
        try:
            producer.publish(
                sealed,
                exchange=exchange.name,
                routing_key=routing_key,
                declare=[queue or exchange],
                serializer="json",
                retry=False,
            )
        except (*connection.connection_errors, *connection.channel_errors) as error:
            raise OperationalError(str(error)) from error


def _send(app: App, task: str, queue: str | Queue, sealed: dict[str, Any], retries: int | None) -> None:
    app.send_task(
        task,
        args=[sealed],
        queue=queue,
        argsrepr="",  # nobody reads it, and building it takes longer than encoding the message
        kwargsrepr="",
        retry=retries is None,
        retry_policy={
            "max_retries": retries,
            "interval_start": 0.1,
            "interval_step": 0.2,
            "interval_max": 1.0,
        },
    )
