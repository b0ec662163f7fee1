"""The Celery application that coordinator and workers share: its queues and its settings.

Each worker process has two queues of its own that expire with it: `leases.*` and `control.*`, both from the
coordinator. The queue `checkpoints` leads back to the coordinator. Celery events carry progress, and a fanout
exchange carries orders to all workers. Every message may be lost, and all are sealed JSON.
docs/decisions/0003-broker-carries-hints.md and 0022-signed-messages-and-rights-at-the-broker.md explain the
settings.
"""

import importlib
import logging
from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from kombu.entity import Exchange, Queue

from oku_core.broker.broker_url import split_tls
from oku_core.broker.transport import (
    CONTROL_PREFIX,
    LEASES_PREFIX,
    QUEUE_EXPIRES_S,
    build_transport_options,
    find_call_s,
    is_amqp,
    refuse_compression,
)
from oku_core.messaging.signing import Reject, RejectionLog, Signer

CHECKPOINTS_QUEUE = "checkpoints"
LEASE_TASK = "oku.lease"
CHECKPOINT_TASK = "oku.checkpoint"
PROGRESS_EVENT = "oku-progress"
ORDERS_EXCHANGE = "oku.orders"
ADDRESSED_EXCHANGE = "oku.addressed"
MOST_SENDERS = 20
"""Threads of one process that can send at the same time, each on a connection of its own."""

_log = logging.getLogger(__name__)


class _Loader(AppLoader):  # type: ignore[misc]  # Celery has no types
    """Imports only installed modules, and reads no configuration files.

    Celery's own loader searches the working directory first, which anybody may have filled.
    """

    def import_from_cwd(self, module: str, imp: Any = None, package: str | None = None) -> Any:  # noqa: ARG002
        return importlib.import_module(module, package)

    def read_configuration(self, env: str = "") -> dict[str, Any]:  # noqa: ARG002  # Celery's signature
        return {}


class App(Celery):  # type: ignore[misc]  # Celery has no types
    """A Celery application that knows the key of its messages.

    Args:
        key: the key that the coordinator and its workers share; the broker does not have it.
        reject: called for each message that is dropped.
        options: options of Celery.
    """

    def __init__(self, key: bytes, reject: Reject, **options: Any) -> None:
        super().__init__("oku", set_as_current=False, loader=_Loader, fixups=(), **options)
        self.signer = Signer(key)
        self.reject = reject


def build_app(broker_url: str, key: bytes, reject: Reject | None = None) -> App:
    """Build the application.

    Args:
        broker_url: the URL of the broker: `redis://`, `rediss://`, `redis+socket://`, `amqp://`, `amqps://`.
        key: the key of the messages.
        reject: called for each message that is dropped; by default, dropped messages are logged.

    Raises:
        UserError: the URL has another scheme, or its TLS parameters are wrong.
    """
    broker_url, tls = split_tls(broker_url)
    refuse_compression()
    app = App(key, reject or RejectionLog(_log).record, broker=broker_url)
    arguments = {"x-queue-type": "quorum"} if is_amqp(broker_url) else None
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        event_serializer="json",
        task_ignore_result=True,
        result_backend=None,
        task_queues=[
            # Celery would bind a queue without an exchange to the exchange of the default queue.
            Queue(
                CHECKPOINTS_QUEUE,
                Exchange(CHECKPOINTS_QUEUE),
                routing_key=CHECKPOINTS_QUEUE,
                queue_arguments=arguments,
            )
        ],
        task_default_queue=CHECKPOINTS_QUEUE,
        task_create_missing_queues=False,
        # Leases are acknowledged on intake: they are addressed to one process and mean nothing to another.
        task_acks_late=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # The broker may be unavailable for any length of time.
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_pool_limit=MOST_SENDERS,
        broker_use_ssl=tls,
        broker_transport_options=build_transport_options(broker_url),
        # With remote control, anyone who can reach the broker could stop workers or redirect them to other
        # queues.
        worker_enable_remote_control=False,
        event_queue_expires=QUEUE_EXPIRES_S,
    )
    return app


def build_worker_app(broker_url: str, key: bytes, reject: Reject) -> App:
    """Build the application of a worker, whose blocking calls for messages last `find_call_s`.

    kombu takes that duration from `polling_interval`. It does not poll in the event loop of a worker.
    """
    app = build_app(broker_url, key, reject)
    app.conf.broker_transport_options["polling_interval"] = find_call_s(app)
    return app


def build_lease_queue(incarnation: str) -> Queue:
    """Build the queue by which the coordinator sends leases to one process of one worker."""
    return _build_addressed_queue(f"{LEASES_PREFIX}{incarnation}")


def build_control_queue(incarnation: str) -> Queue:
    """Build the queue by which the coordinator sends `Control` to one process of one worker."""
    return _build_addressed_queue(f"{CONTROL_PREFIX}{incarnation}")


def _build_addressed_queue(name: str) -> Queue:
    """Build a queue that its worker declares, and to which the coordinator sends by its name alone.

    All share one exchange, because exchanges do not expire with the queues that are bound to them. It takes
    part in nothing, but Celery would bind a queue without one to the exchange of the default queue.
    """
    return Queue(name, Exchange(ADDRESSED_EXCHANGE), routing_key=name, expires=QUEUE_EXPIRES_S)


def build_orders_queue(name: str) -> Queue:
    """Build the queue by which the worker process with this name receives the coordinator's orders."""
    return Queue(
        f"{ORDERS_EXCHANGE}.{name}",
        Exchange(ORDERS_EXCHANGE, type="fanout", durable=False),
        durable=False,
        auto_delete=True,
        expires=QUEUE_EXPIRES_S,
    )
