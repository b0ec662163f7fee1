"""The Celery application that coordinator and workers share: its queues and its settings.

There are two queues: `leases` (coordinator to workers) and `reports` (workers to coordinator), JSON only.
Beside them Celery events carry progress, and an exchange that every worker listens to carries orders; both
may be lost. All messages are sealed. What the settings mean and why is in
docs/decisions/0003-broker-carries-hints.md and 0022-signed-messages-and-rights-at-the-broker.md.
"""

import importlib
import logging
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from kombu.entity import Exchange, Queue

from oku_core.messaging.broker_url import split_tls
from oku_core.messaging.rejection import RejectedMessageError, RejectionLog
from oku_core.messaging.signing import Signer
from oku_core.messaging.transport import (
    build_transport_options,
    find_call_s,
    is_amqp,
    refuse_compression,
)

Reject = Callable[[RejectedMessageError], None]

LEASES_QUEUE = "leases"
REPORTS_QUEUE = "reports"
LEASE_TASK = "oku.lease"
REPORT_TASK = "oku.report"
PROGRESS_EVENT = "oku-progress"
ORDERS_EXCHANGE = "oku.orders"

_QUEUE_EXPIRES_S = 60.0
"""How long the queue of a process that no longer listens stays."""

_log = logging.getLogger(__name__)


class _Loader(AppLoader):  # type: ignore[misc]  # Celery has no types
    """Imports what is installed, and reads no configuration but ours.

    Celery's own loader looks into the working directory first, which may be anybody's.
    """

    def import_from_cwd(self, module: str, imp: Any = None, package: str | None = None) -> Any:  # noqa: ARG002
        return importlib.import_module(module, package)

    def read_configuration(self, env: str = "") -> dict[str, Any]:  # noqa: ARG002  # Celery's signature
        return {}


class App(Celery):  # type: ignore[misc]  # Celery has no types
    """A Celery application with the key of its messages.

    Args:
        key: shared by the coordinator and its workers; the broker does not have it.
        reject: told of each message that is dropped.
        options: of Celery.
    """

    def __init__(self, key: bytes, reject: Reject, **options: Any) -> None:
        super().__init__("oku", set_as_current=False, loader=_Loader, fixups=(), **options)
        self.signer = Signer(key)
        self.reject = reject


def build_app(broker_url: str, key: bytes, reject: Reject | None = None) -> App:
    """An application on `broker_url` (`redis://`, `rediss://`, `redis+socket://`, `amqp://`, `amqps://`).

    Args:
        broker_url: of the broker.
        key: of its messages.
        reject: told of each message that is dropped; they are logged unless it is given.

    Raises:
        UserError: the URL is none of these, or what it says of TLS is wrong.
    """
    broker_url, tls = split_tls(broker_url)
    refuse_compression()
    app = App(key, reject or RejectionLog(_log).note, broker=broker_url)
    arguments = {"x-queue-type": "quorum"} if is_amqp(broker_url) else None
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        event_serializer="json",
        task_ignore_result=True,
        result_backend=None,
        task_queues=[
            # Celery would bind a queue that names no exchange to that of the default queue.
            Queue(name, Exchange(name), routing_key=name, queue_arguments=arguments)
            for name in (LEASES_QUEUE, REPORTS_QUEUE)
        ],
        task_default_queue=LEASES_QUEUE,
        task_create_missing_queues=False,
        # A message is acknowledged when its lease has been reported: prefetch then counts leases under way.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # The broker may be away for as long as it likes.
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_use_ssl=tls,
        broker_transport_options=build_transport_options(broker_url),
        # Whoever reaches the broker could shut workers down by it, or have them consume other queues.
        worker_enable_remote_control=False,
        event_queue_expires=_QUEUE_EXPIRES_S,
    )
    return app


def build_worker_app(broker_url: str, key: bytes) -> App:
    """An application as of `build_app`, for a worker: its calls for messages last as `find_call_s` says.

    kombu makes that of its `polling_interval`; in the event loop of a worker it does not poll.
    """
    app = build_app(broker_url, key)
    app.conf.broker_transport_options["polling_interval"] = find_call_s(app)
    return app


def build_orders_queue(name: str) -> Queue:
    """The queue by which the process of a worker with this name gets the orders of the coordinator."""
    return Queue(
        f"{ORDERS_EXCHANGE}.{name}",
        Exchange(ORDERS_EXCHANGE, type="fanout", durable=False),
        durable=False,
        auto_delete=True,
        expires=_QUEUE_EXPIRES_S,
    )
