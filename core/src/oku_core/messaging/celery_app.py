"""The Celery application that coordinator and workers share, and the only module that configures it.

Two queues: `leases` (coordinator to workers) and `reports` (workers to coordinator), JSON only. Beside them
Celery events carry progress, and an exchange that every worker listens to carries orders; both may be lost.
All of it is sealed. What the settings mean and why is in docs/decisions/0003-broker-carries-hints.md and
0022-signed-messages-and-rights-at-the-broker.md.
"""

import importlib
import logging
import socket
import sys
import time
from collections.abc import Callable
from queue import Empty
from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from kombu import compression
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, redis

from oku_core.messaging.broker_url import split_tls
from oku_core.messaging.codec import seal_lease, seal_message, seal_order
from oku_core.messaging.lease import Lease, Message
from oku_core.messaging.order import Order
from oku_core.messaging.rejection import MalformedMessageError, RejectedMessageError, RejectionLog
from oku_core.messaging.signing import Signer

_log = logging.getLogger(__name__)

Reject = Callable[[RejectedMessageError], None]

LEASES_QUEUE = "leases"
REPORTS_QUEUE = "reports"
LEASE_TASK = "oku.lease"
REPORT_TASK = "oku.report"
PROGRESS_EVENT = "oku-progress"
ORDERS_EXCHANGE = "oku.orders"

if sys.platform == "darwin":
    _KEEP_IDLE = socket.TCP_KEEPALIVE
else:
    _KEEP_IDLE = socket.TCP_KEEPIDLE
_KEEPALIVE = {_KEEP_IDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""That the peer of an idle connection is gone without a word, as with its node, is noticed after 11 s."""

LEASE_SLOTS = 2
"""Leases that a worker may have at a time: one that runs and one that waits behind it."""

LONGEST_MESSAGE = 32_000_000
"""Bytes: a report with a million unfinished indices of the largest request space has 17 million."""

_CALL_S, _LOCAL_CALL_S = 1.0, 0.2
"""So long is a call that waits for a message out; shorter ones are more of them, for a broker of many."""
_CALL_MARGIN_S = 0.2
_VISIBILITY_TIMEOUT_S = 6 * 3600
"""A lease message of a dead worker may come back after this; it is stale by then and is dropped."""
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
_BEAT_PATIENCE_S = 3
_QUEUE_EXPIRES_S = 60.0
"""So long the queue of one that hears no more stays."""
_REPORT_VISIBILITY_TIMEOUT_S = 5
"""Reports that a killed coordinator had fetched and not committed come back after this."""


class _Loader(AppLoader):  # type: ignore[misc]  # Celery has no types
    """Imports what is installed, and reads no configuration but ours.

    Celery's own looks into the working directory first, which may be anybody's.
    """

    def import_from_cwd(self, module: str, imp: Any = None, package: str | None = None) -> Any:  # noqa: ARG002
        return importlib.import_module(module, package)

    def read_configuration(self, env: str = "") -> dict[str, Any]:  # noqa: ARG002  # Celery's signature
        return {}


_unreadable = RejectionLog(_log)


def _build_unreadable(error: Exception) -> MalformedMessageError:
    return MalformedMessageError(f"kombu cannot read it: {type(error).__name__}: {error!s:.80}")


class _RedisChannel(redis.Channel):
    """Drops what kombu cannot read, or stumbles over: that would end a worker."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # kombu has no types
        except _UNREADABLE as error:
            _unreadable.note(_build_unreadable(error))
            raise Empty from error

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:
            _unreadable.note(_build_unreadable(error))
            return False


class RedisTransport(redis.Transport):
    """kombu's, with channels that outlive what is not a message."""

    Channel = _RedisChannel


# By their names: kombu takes the transport of a URL with `redis+socket://` from nowhere else.
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = f"{__name__}:RedisTransport"


class App(Celery):  # type: ignore[misc]  # Celery has no types
    """A Celery application with the key of its messages.

    Args:
        key: that coordinator and workers share, and the broker does not have.
        reject: told of each message that is dropped.
        options: of Celery.
    """

    def __init__(self, key: bytes, reject: Reject, **options: Any) -> None:
        super().__init__("oku", set_as_current=False, loader=_Loader, fixups=(), **options)
        self.signer = Signer(key)
        self.reject = reject


_REFUSED_S = 0.5
"""After so long a broker that has refused a message is asked again."""


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
    _refuse_compression()
    app = App(key, reject or RejectionLog(_log).note, broker=broker_url)
    is_amqp = _is_amqp(broker_url)
    arguments = {"x-queue-type": "quorum"} if is_amqp else None
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
        # A message is acknowledged when its lease has been reported: prefetch then counts leases in hand.
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
        broker_transport_options=_build_transport_options(is_amqp=is_amqp),
        # Whoever reaches the broker could shut workers down by it, or have them consume other queues.
        worker_enable_remote_control=False,
        event_queue_expires=_QUEUE_EXPIRES_S,
    )
    return app


def build_worker_app(broker_url: str, key: bytes) -> App:
    """As `build_app`, for a worker: its calls for messages are as long as `find_call_s` says.

    kombu makes that of its `polling_interval`; in the event loop of a worker it does not poll.
    """
    app = build_app(broker_url, key)
    app.conf.broker_transport_options["polling_interval"] = find_call_s(app)
    return app


def build_beat_transport_options(app: App) -> dict[str, Any]:
    """Transport options of a connection that Redis has to answer within three seconds, or it is given up.

    Who is silent for longer is soon taken for dead.
    """
    options: dict[str, Any] = dict(app.conf.broker_transport_options)
    if not _is_amqp(app.conf.broker_url):
        options |= {"socket_timeout": _BEAT_PATIENCE_S, "health_check_interval": _BEAT_PATIENCE_S}
    return options


def build_reports_transport_options(app: App) -> dict[str, Any]:
    """Transport options of the one consumer of `reports`.

    Its unacknowledged messages stand under keys of their own, so that its short visibility timeout does not
    give out leases again; and reports that come late would be missed.
    """
    options = build_beat_transport_options(app)
    if not _is_amqp(app.conf.broker_url):
        options |= {
            "unacked_key": "unacked_reports",
            "unacked_index_key": "unacked_reports_index",
            "unacked_mutex_key": "unacked_reports_mutex",
            "unacked_mutex_expire": _REPORT_VISIBILITY_TIMEOUT_S,
            "visibility_timeout": _REPORT_VISIBILITY_TIMEOUT_S,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }
    return options


def find_connection_errors(app: Celery) -> tuple[type[Exception], ...]:
    """What is raised when the broker is away, or a connection to it is lost."""
    connection = app.connection_for_read()
    errors: tuple[type[Exception], ...] = connection.connection_errors + connection.channel_errors
    return (OperationalError, *errors)


def _is_amqp(broker_url: str) -> bool:
    return broker_url.startswith("amqp")


def find_call_s(app: App) -> float:
    """How long a call that waits for a message is out on Redis, where who ends has to wait for it."""
    return _LOCAL_CALL_S if str(app.conf.broker_url).startswith("redis+socket") else _CALL_S


def find_last_call_s(app: App) -> float:
    """After so long the last call is back."""
    return find_call_s(app) + _CALL_MARGIN_S


def build_orders_queue(name: str) -> Queue:
    """The queue by which one process of a worker, of this name, gets the orders of the coordinator."""
    return Queue(
        f"{ORDERS_EXCHANGE}.{name}",
        Exchange(ORDERS_EXCHANGE, type="fanout", durable=False),
        durable=False,
        auto_delete=True,
        expires=_QUEUE_EXPIRES_S,
    )


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
            # Celery tries again when a connection is lost, but not when the broker takes no writes, as on a
            # full disk.
            if not isinstance(error, find_connection_errors(app)):
                raise
            time.sleep(_REFUSED_S)
        else:
            return


def send_order(app: App, order: Order) -> None:
    """Tell all workers something; raises kombu's operational error when the broker is away.

    One try: an order that comes when nobody wants it any more is worse than none.
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


def read_json_body(envelope: Any) -> bytes | str:
    """The body of a message that says that it is JSON, and is not too long.

    Raises:
        MalformedMessageError: it is something else.
    """
    if envelope.content_type != "application/json":
        raise MalformedMessageError(f"a message is of type {envelope.content_type!r:.40}")
    body: object = envelope.body
    if not isinstance(body, bytes | str):
        raise MalformedMessageError("a message has no body")
    if len(body) > LONGEST_MESSAGE:
        raise MalformedMessageError(f"a message is longer than {LONGEST_MESSAGE:,} bytes")
    return body


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


def _refuse_compression() -> None:
    """Let kombu unpack nothing: it would before a message was looked at, and a bomb fills the memory."""
    for kind in compression.encoders():
        compression.register(_refuse, _refuse, kind)


def _refuse(_: bytes) -> bytes:
    raise ValueError("no message of ours is compressed")


def _build_transport_options(*, is_amqp: bool) -> dict[str, Any]:
    if is_amqp:
        return {"confirm_publish": True, "socket_settings": _KEEPALIVE}
    return {
        "visibility_timeout": _VISIBILITY_TIMEOUT_S,
        # Nobody must wait for ever on a connection that is dead. A command that fails is not tried again by
        # the client library: a subscriber would wait on a new connection that has subscribed to nothing.
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "socket_keepalive_options": _KEEPALIVE,
        "health_check_interval": 10,
    }
