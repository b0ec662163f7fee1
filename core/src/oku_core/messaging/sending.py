"""Sends messages: leases and orders from the coordinator, claims and reports from the workers.

Each is sealed with the key of the application. How long a sender keeps trying depends on what a message is
worth later.
"""

import time
from typing import Any

from kombu.exceptions import OperationalError

from oku_core.messaging.celery_app import (
    LEASE_TASK,
    LEASES_QUEUE,
    REPORT_TASK,
    REPORTS_QUEUE,
    App,
    build_orders_queue,
)
from oku_core.messaging.codec import seal_lease, seal_message, seal_order
from oku_core.messaging.lease import Lease, Message
from oku_core.messaging.order import Order
from oku_core.messaging.transport import find_connection_errors

_REFUSED_S = 0.5
"""How long to wait before a broker that has refused a message is asked again."""


def send_lease(app: App, lease: Lease) -> None:
    """Put a lease into the queue; raises kombu's operational error when the broker is away."""
    _send(app, LEASE_TASK, LEASES_QUEUE, seal_lease(app.signer, lease), retries=0)


def send_message(app: App, message: Message) -> None:
    """Put a claim or a report into the queue; blocks until the broker has it, however long that takes."""
    sealed = seal_message(app.signer, message)
    while True:
        try:
            _send(app, REPORT_TASK, REPORTS_QUEUE, sealed, retries=None)
        except Exception as error:
            # Celery retries when a connection is lost, but not when the broker takes no writes, as on a full
            # disk.
            if not isinstance(error, find_connection_errors(app)):
                raise
            time.sleep(_REFUSED_S)
        else:
            return


def send_order(app: App, order: Order) -> None:
    """Tell all workers something; raises kombu's operational error when the broker is away.

    It is tried once: an order that arrives when nobody wants it any more is worse than none.
    """
    exchange = build_orders_queue("").exchange
    with app.producer_pool.acquire(block=True) as producer:
        connection = producer.connection
        try:
            producer.publish(
                seal_order(app.signer, order),
                exchange=exchange.name,
                declare=[exchange],
                serializer="json",
                retry=False,
            )
        except (*connection.connection_errors, *connection.channel_errors) as error:
            raise OperationalError(str(error)) from error


def _send(app: App, task: str, queue: str, sealed: dict[str, Any], retries: int | None) -> None:
    app.send_task(
        task,
        args=[sealed],
        queue=queue,
        argsrepr="",  # nobody reads it, and it takes longer than the message itself
        kwargsrepr="",
        retry=retries is None,
        retry_policy={
            "max_retries": retries,
            "interval_start": 0.1,
            "interval_step": 0.2,
            "interval_max": 1.0,
        },
    )
