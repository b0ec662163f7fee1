"""Sends messages: leases and orders from the coordinator, claims and reports from the workers.

Each message is sealed with the key of the application. How long a sender retries depends on whether the
message is still useful later.
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
"""The pause before a message that the broker has refused is sent again."""


def send_lease(app: App, lease: Lease) -> None:
    """Put a lease into its queue; raise kombu's `OperationalError` if the broker is unavailable."""
    _send(app, LEASE_TASK, LEASES_QUEUE, seal_lease(app.signer, lease), retries=0)


def send_message(app: App, message: Message) -> None:
    """Put a claim or a report into its queue; block until the broker has it, however long that takes."""
    sealed = seal_message(app.signer, message)
    while True:
        try:
            _send(app, REPORT_TASK, REPORTS_QUEUE, sealed, retries=None)
        except Exception as error:
            # Celery retries if a connection is lost, but not if the broker refuses writes, for example
            # because its disk is full.
            if not isinstance(error, find_connection_errors(app)):
                raise
            time.sleep(_REFUSED_S)
        else:
            return


def send_order(app: App, order: Order) -> None:
    """Send an order to all workers; raise kombu's `OperationalError` if the broker is unavailable.

    There is no retry: an order that arrives after it has become obsolete is worse than none.
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
