"""The connections to the broker: kombu's transport, hardened, its options, and the limits of a message.

kombu trusts every message. Here it survives anything that is not a message, decompresses nothing, and never
waits for an answer without a timeout. docs/decisions/0003-broker-carries-hints.md explains the options.
"""

import logging
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty
from typing import Any

from celery import Celery
from kombu import compression
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, pyamqp, redis, virtual
from kombu.utils.json import dumps

from oku_core.json_reader import decode_document
from oku_core.messaging.codec import LONGEST_MESSAGE
from oku_core.messaging.signing import MalformedMessageError, RejectionLog

LEASES_PREFIX = "leases."
CONTROL_PREFIX = "control."
"""What the names of queues begin with that belong to one process of one worker, named behind it."""
QUEUE_EXPIRES_S = 60.0
"""How long the broker keeps the queue of a process that no longer listens."""

if sys.platform == "darwin":
    KEEP_IDLE = socket.TCP_KEEPALIVE
else:
    KEEP_IDLE = socket.TCP_KEEPIDLE
"""The socket option for how long a connection is idle before the kernel probes its peer."""
_KEEPALIVE = {KEEP_IDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
"""A peer that vanishes silently, for example with its node, is noticed after 11 s."""

_CALL_S, _LOCAL_CALL_S = 1.0, 0.1
"""How long a blocking call for a message lasts; with shorter calls, a shared broker gets more of them."""
_CALL_MARGIN_S = 0.2
CHECKPOINTS_POLL_S = 0.1
"""How long the consumer of checkpoints waits for one at a time."""
_VISIBILITY_TIMEOUT_S = 6 * 3600
"""After this time the lease message of a dead worker may be redelivered; by then it is stale and dropped."""
_CHECKPOINT_VISIBILITY_TIMEOUT_S = 5
"""After this time, checkpoints that a killed coordinator had fetched but not committed are redelivered."""
_HEARTBEAT_PATIENCE_S = 3
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)

_unreadable_log = RejectionLog(logging.getLogger(__name__))


class _RedisQoS(redis.QoS):
    """The messages that were taken and not acknowledged yet."""

    _gathered: list[tuple[Any, str]] | None = None

    def append(self, message: Any, delivery_tag: str) -> None:
        """Note that a message was taken."""
        if self._gathered is None:
            super().append(message, delivery_tag)  # type: ignore[no-untyped-call]  # kombu has no types
            return
        self._gathered.append((message, delivery_tag))
        virtual.QoS.append(self, message, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002  # kombu's own
        """Give a message up, or back into its queue, from where it was noted."""
        self._save_gathered()
        super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Note the messages that are taken meanwhile in one round trip."""
        self._gathered = []
        try:
            yield
        finally:
            self._save_gathered()
            self._gathered = None

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:  # noqa: FBT001, FBT002
        """Give back a message that was not acknowledged, or forget it if it is not a message."""
        try:
            super().restore_by_tag(tag, client, leftmost)  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:
            _log_unreadable(error)
            self._remove_from_indices(tag).execute()  # type: ignore[no-untyped-call]

    def _save_gathered(self) -> None:
        if not self._gathered:
            return
        now, raw = time.time(), {}
        for message, tag in self._gathered:
            delivery = message.delivery_info
            raw[tag] = dumps([message._raw, delivery["exchange"], delivery["routing_key"]])  # noqa: SLF001
        self._gathered.clear()
        with self.pipe_or_acquire() as pipeline:
            pipeline.zadd(self.unacked_index_key, dict.fromkeys(raw, now))
            pipeline.hset(self.unacked_key, mapping=raw)
            pipeline.execute()

    def ack_all(self, tags: Sequence[str]) -> None:
        """Acknowledge messages in one round trip."""
        with self.pipe_or_acquire() as pipeline:
            for tag in tags:
                self._remove_from_indices(tag, pipeline)  # type: ignore[no-untyped-call]
            pipeline.execute()
        for tag in tags:
            virtual.QoS.ack(self, tag)


class _RedisChannel(redis.Channel):
    """A channel that drops messages that make kombu fail, which would otherwise end a worker.

    Its messages to one worker expire unless they are taken. kombu does that only for queues that the sender
    has declared, and would remember each of them for ever.
    """

    QoS = _RedisQoS
    takes_many = False
    """Whether a call takes all messages of its queue that are there, up to the prefetch count."""

    def _put(self, queue: str, message: Any, **options: Any) -> None:
        if not queue.startswith((LEASES_PREFIX, CONTROL_PREFIX)):
            super()._put(queue, message, **options)  # type: ignore[no-untyped-call]
            return
        commands = (("lpush", queue, dumps(message)), ("pexpire", queue, round(1000 * QUEUE_EXPIRES_S)))
        if (batch := options.get("_publish_batch")) is not None:
            for command in commands:
                batch.add(*command)
            return
        with self.conn_or_acquire() as client, client.pipeline() as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            pipeline.execute()

    def _brpop_read(self, **options: Any) -> Any:
        if not self.takes_many:
            return self._read_first(**options)
        with self.qos.gather():
            has_read = self._read_first(**options)
            self._read_more()
        return has_read

    def _read_first(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # kombu has no types
        except _UNREADABLE as error:
            _log_unreadable(error)
            raise Empty from error

    def _read_more(self) -> None:
        for queue in list(self._active_queues):
            if not (most := self.qos.can_consume_max_estimate()):
                return
            with self.conn_or_acquire() as client:
                messages = client.rpop(queue, most) or ()
            for message in messages:
                try:
                    self.connection._deliver(decode_document(message), queue)  # noqa: SLF001  # as kombu does it
                except _UNREADABLE as error:
                    _log_unreadable(error)

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[no-untyped-call]
        except _UNREADABLE as error:
            _log_unreadable(error)
            return False


class RedisTransport(redis.Transport):
    """kombu's transport, with channels that survive anything that is not a message."""

    Channel = _RedisChannel


# kombu's own reader of envelopes has no limits, and builds objects of types that an envelope names.
redis.loads = decode_document  # type: ignore[attr-defined, assignment]
# The aliases are replaced because kombu offers no other way to choose the transport of `redis+socket://`.
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = f"{__name__}:RedisTransport"


_BASIC_CLASS = 60
"""The class of AMQP's methods that messages belong to."""
_loaders: Any = pyamqp.amqp.serialization.PROPERTY_CLASSES  # type: ignore[attr-defined]  # as kombu has it
_load_properties = _loaders[_BASIC_CLASS]


def _load_bounded_properties(content: bytes, offset: int) -> tuple[dict[str, Any], int]:
    """The properties of a message; none if its headers are nested too deep, so that it is dropped."""
    try:
        properties: tuple[dict[str, Any], int] = _load_properties(content, offset)
    except RecursionError:
        return {}, offset
    return properties


_loaders[_BASIC_CLASS] = _load_bounded_properties


def is_amqp(broker_url: str) -> bool:
    """Whether the broker speaks AMQP; all others are Redis or Valkey."""
    return broker_url.startswith("amqp")


def build_transport_options(broker_url: str) -> dict[str, Any]:
    """Build the transport options of every connection to this broker."""
    if is_amqp(broker_url):
        return {"confirm_publish": True, "socket_settings": _KEEPALIVE}
    return {
        "visibility_timeout": _VISIBILITY_TIMEOUT_S,
        # No process may wait forever on a dead connection. The client library does not retry commands that
        # fail: a subscriber would then wait on a new connection that has no subscriptions.
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "socket_keepalive_options": _KEEPALIVE,
        "health_check_interval": 10,
    }


def build_heartbeat_transport_options(app: Celery) -> dict[str, Any]:
    """Build the options of a connection that is closed if Redis does not answer within three seconds.

    A worker that is silent for longer is soon declared dead.
    """
    options: dict[str, Any] = dict(app.conf.broker_transport_options)
    if not is_amqp(app.conf.broker_url):
        options |= {"socket_timeout": _HEARTBEAT_PATIENCE_S, "health_check_interval": _HEARTBEAT_PATIENCE_S}
    return options


def build_checkpoints_transport_options(app: Celery) -> dict[str, Any]:
    """Build the options of the only consumer of `checkpoints`, which needs redelivered messages soon.

    Its unacknowledged messages have their own keys, so that its short visibility timeout does not redeliver
    leases.
    """
    options = build_heartbeat_transport_options(app)
    if not is_amqp(app.conf.broker_url):
        options |= {
            "unacked_key": "unacked_checkpoints",
            "unacked_index_key": "unacked_checkpoints_index",
            "unacked_mutex_key": "unacked_checkpoints_mutex",
            "unacked_mutex_expire": _CHECKPOINT_VISIBILITY_TIMEOUT_S,
            "visibility_timeout": _CHECKPOINT_VISIBILITY_TIMEOUT_S,
            # Every second or two: outside an event loop kombu counts waits that brought nothing.
            "unacked_restore_throttle": round(1 / CHECKPOINTS_POLL_S),
        }
    return options


def find_connection_errors(app: Celery) -> tuple[type[Exception], ...]:
    """The exceptions that are raised if the broker is unavailable or a connection to it is lost."""
    connection = app.connection_for_read()
    errors: tuple[type[Exception], ...] = connection.connection_errors + connection.channel_errors
    return (OperationalError, *errors)


def find_refusals(app: Celery) -> tuple[type[Exception], ...]:
    """The exceptions that are raised if the broker answers, but refuses a request."""
    errors: tuple[type[Exception], ...] = app.connection_for_read().channel_errors
    return errors


def find_call_s(app: Celery) -> float:
    """How long a blocking call for a message lasts on Redis; a process that ends has to wait for it."""
    return _LOCAL_CALL_S if str(app.conf.broker_url).startswith("redis+socket") else _CALL_S


def find_last_call_s(app: Celery) -> float:
    """The time after which the last call of a process that ends has certainly returned."""
    return find_call_s(app) + _CALL_MARGIN_S


def has_last_call_returned(channel: Any) -> bool:
    """Whether certainly no call for messages is out on a channel that has stopped consuming from all queues.

    Only Redis knows: there a channel has at most one call out.
    """
    return isinstance(channel, _RedisChannel) and not channel._in_poll  # noqa: SLF001  # kombu's own question


def take_many(channel: Any) -> None:
    """Let a channel that has a prefetch count take, on Redis and Valkey, many messages in one round trip."""
    if isinstance(channel, _RedisChannel):
        channel.takes_many = True


def acknowledge(envelopes: Sequence[Any]) -> None:
    """Acknowledge messages of one channel; on Redis and Valkey together, in one round trip."""
    if envelopes and isinstance(envelopes[0].channel, _RedisChannel):
        envelopes[0].channel.qos.ack_all([envelope.delivery_tag for envelope in envelopes])
        return
    for envelope in envelopes:
        envelope.ack()


def refuse_compression() -> None:
    """Stop kombu from decompressing messages: it does so before they are checked, and a bomb fills memory."""
    for kind in compression.encoders():
        compression.register(_refuse, _refuse, kind)


def read_json_body(envelope: Any) -> bytes | str:
    """Return the body of a message that is declared as JSON and is not too long.

    Raises:
        MalformedMessageError: the message is of another type, has no body, or is too long.
    """
    if envelope.content_type != "application/json":
        raise MalformedMessageError(f"a message is of type {envelope.content_type!r:.40}")
    body: object = envelope.body
    if not isinstance(body, bytes | str):
        raise MalformedMessageError("a message has no body")
    if len(body) > LONGEST_MESSAGE:
        raise MalformedMessageError(f"a message is longer than {LONGEST_MESSAGE:,} bytes")
    return body


def _log_unreadable(error: Exception) -> None:
    _unreadable_log.record(
        MalformedMessageError(f"kombu cannot read it: {type(error).__name__}: {error!s:.80}")
    )


def _refuse(_: bytes) -> bytes:
    raise ValueError("Oku's messages are never compressed")
