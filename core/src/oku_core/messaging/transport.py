"""The connections to the broker: kombu's transport as we use it, its options, and what a message may be.

kombu is made for messages of friends. Here it outlives what is not a message, unpacks nothing, and waits for
no answer for ever. What the options mean and why is in docs/decisions/0003-broker-carries-hints.md.
"""

import logging
import socket
import sys
from queue import Empty
from typing import Any

from celery import Celery
from kombu import compression
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, redis

from oku_core.messaging.rejection import MalformedMessageError, RejectionLog

LONGEST_MESSAGE = 32_000_000
"""Bytes: a report with a million unfinished indices of the largest request space has 17 million."""

if sys.platform == "darwin":
    KEEP_IDLE = socket.TCP_KEEPALIVE
else:
    KEEP_IDLE = socket.TCP_KEEPIDLE
"""The socket option for how long a connection is idle before the kernel probes its peer."""
_KEEPALIVE = {KEEP_IDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""A peer that vanished without a word, for example with its node, is noticed after 11 s."""

_CALL_S, _LOCAL_CALL_S = 1.0, 0.2
"""How long a call that waits for a message lasts; shorter calls are more of them, for a broker of many."""
_CALL_MARGIN_S = 0.2
_VISIBILITY_TIMEOUT_S = 6 * 3600
"""After this a lease message of a dead worker may come back; it is stale by then and is dropped."""
_REPORT_VISIBILITY_TIMEOUT_S = 5
"""After this, reports that a killed coordinator had fetched and not committed come back."""
_HEARTBEAT_PATIENCE_S = 3
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)

_unreadable_log = RejectionLog(logging.getLogger(__name__))


class _RedisChannel(redis.Channel):
    """A channel that drops what kombu cannot read or stumbles over, which would end a worker."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # kombu has no types
        except _UNREADABLE as error:
            _note_unreadable(error)
            raise Empty from error

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:
            _note_unreadable(error)
            return False


class RedisTransport(redis.Transport):
    """kombu's transport, with channels that outlive what is not a message."""

    Channel = _RedisChannel


# By their names: kombu takes the transport of a URL with `redis+socket://` from nowhere else.
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = f"{__name__}:RedisTransport"


def is_amqp(broker_url: str) -> bool:
    """Whether the broker speaks AMQP; all others are Redis or Valkey."""
    return broker_url.startswith("amqp")


def build_transport_options(broker_url: str) -> dict[str, Any]:
    """The transport options of every connection to this broker."""
    if is_amqp(broker_url):
        return {"confirm_publish": True, "socket_settings": _KEEPALIVE}
    return {
        "visibility_timeout": _VISIBILITY_TIMEOUT_S,
        # Nobody must wait for ever on a connection that is dead. The client library does not retry a command
        # that fails: a subscriber would wait on a new connection that has subscribed to nothing.
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "socket_keepalive_options": _KEEPALIVE,
        "health_check_interval": 10,
    }


def build_heartbeat_transport_options(app: Celery) -> dict[str, Any]:
    """The options of a connection that is given up when Redis does not answer within three seconds.

    Whoever is silent for longer will soon be taken for dead.
    """
    options: dict[str, Any] = dict(app.conf.broker_transport_options)
    if not is_amqp(app.conf.broker_url):
        options |= {"socket_timeout": _HEARTBEAT_PATIENCE_S, "health_check_interval": _HEARTBEAT_PATIENCE_S}
    return options


def build_reports_transport_options(app: Celery) -> dict[str, Any]:
    """The options of the one consumer of `reports`, which would miss reports that come late.

    Its unacknowledged messages stand under keys of their own, so that its short visibility timeout does not
    give out leases again.
    """
    options = build_heartbeat_transport_options(app)
    if not is_amqp(app.conf.broker_url):
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


def find_call_s(app: Celery) -> float:
    """How long a call that waits for a message lasts on Redis; a process that ends has to wait for it."""
    return _LOCAL_CALL_S if str(app.conf.broker_url).startswith("redis+socket") else _CALL_S


def find_last_call_s(app: Celery) -> float:
    """After how long the last call of a process that ends has returned."""
    return find_call_s(app) + _CALL_MARGIN_S


def refuse_compression() -> None:
    """Let kombu unpack nothing: it would before a message is looked at, and a bomb fills the memory."""
    for kind in compression.encoders():
        compression.register(_refuse, _refuse, kind)


def read_json_body(envelope: Any) -> bytes | str:
    """The body of a message that says that it is JSON and is not too long.

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


def _note_unreadable(error: Exception) -> None:
    _unreadable_log.note(
        MalformedMessageError(f"kombu cannot read it: {type(error).__name__}: {error!s:.80}")
    )


def _refuse(_: bytes) -> bytes:
    raise ValueError("Oku's messages are never compressed")
