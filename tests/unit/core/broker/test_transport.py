import socket
import struct
import zlib
from typing import Any

import pytest
from kombu import compression
from kombu.transport import pyamqp, redis
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.broker.celery_app import build_app
from oku_core.broker.transport import (
    KEEP_IDLE,
    build_checkpoints_transport_options,
    build_heartbeat_transport_options,
    find_call_s,
    find_last_call_s,
    has_last_call_returned,
    read_json_body,
)
from oku_core.messaging.codec import LONGEST_MESSAGE
from oku_core.messaging.signing import MalformedMessageError

AMQP: Any = pyamqp.amqp  # type: ignore[attr-defined]  # as kombu has it
REDIS: Any = redis
REDIS_URLS = ["redis://host:6379/0", "rediss://host/0", "redis+socket:///run/valkey.sock"]
AMQP_URLS = ["amqp://host//", "amqps://host//"]


def test_redis_redelivers_checkpoints_soon_and_leases_late() -> None:
    """Checkpoints have a short visibility timeout and their own keys, so that it redelivers no leases."""
    for url in REDIS_URLS:
        app = build_app(url, MESSAGE_KEY)
        leases, checkpoints = app.conf.broker_transport_options, build_checkpoints_transport_options(app)
        assert [queue.queue_arguments for queue in app.conf.task_queues] == [None]
        assert checkpoints["visibility_timeout"] < 60
        assert leases["visibility_timeout"] > 3600
        for key in ("unacked_key", "unacked_index_key", "unacked_mutex_key"):
            assert checkpoints[key] not in {
                None,
                leases.get(key),
                "unacked",
                "unacked_index",
                "unacked_mutex",
            }
    for url, call_s in [("redis://host", 1.0), ("rediss://host", 1.0), ("redis+socket:///run/s", 0.1)]:
        # A process that ends waits for its last call. Calls are short where nobody else shares the broker.
        app = build_app(url, MESSAGE_KEY)
        assert find_call_s(app) == call_s
        assert call_s < find_last_call_s(app) < call_s + 1.0
    # The last call of other brokers is not known to have returned. Only Redis tells.
    with build_app("memory://", MESSAGE_KEY).connection_for_read() as connection:
        assert not has_last_call_returned(connection.default_channel)


def test_no_call_to_the_broker_waits_forever() -> None:
    """A dead connection is given up; that of heartbeats before the worker is declared dead."""
    for url in REDIS_URLS:
        app = build_app(url, MESSAGE_KEY)
        options = app.conf.broker_transport_options
        assert 0 < options["socket_connect_timeout"] <= options["socket_timeout"] <= 60
        assert 0 < build_heartbeat_transport_options(app)["socket_timeout"] < 5
    for url in [*REDIS_URLS, *AMQP_URLS]:
        # A subscriber is not silently reconnected. redis-py would wait on a connection without subscriptions.
        app = build_app(url, MESSAGE_KEY)
        assert "retry_on_timeout" not in app.conf.broker_transport_options
    for url in [*REDIS_URLS, *AMQP_URLS]:
        # The kernel probes a silent peer within seconds. The kernel's own default is two hours.
        options = build_app(url, MESSAGE_KEY).conf.broker_transport_options
        keepalive = options.get("socket_keepalive_options") or options["socket_settings"]
        assert keepalive[KEEP_IDLE] + keepalive[socket.TCP_KEEPINTVL] * keepalive[socket.TCP_KEEPCNT] < 15


@pytest.mark.parametrize("kind", ["application/x-gzip", "gzip", "zlib", "bzip2"])
def test_nothing_is_decompressed(kind: str) -> None:
    """A message of a megabyte could become a gigabyte before it is checked."""
    build_app("memory://", MESSAGE_KEY)
    with pytest.raises(ValueError, match="compressed"):
        compression.decompress(zlib.compress(b"x"), kind)


class Envelope:
    """A message as kombu delivers it."""

    def __init__(self, body: object, content_type: str = "application/json") -> None:
        self.body = body
        self.content_type = content_type


@pytest.mark.parametrize(
    ("envelope", "fault"),
    [
        (Envelope(b"x", "application/x-python-serialize"), "is of type 'application/x-python-serialize'"),
        (Envelope(b"x", "x" * 1000), "is of type 'x{39}$"),
        (Envelope(None), "has no body"),
        (Envelope({}), "has no body"),
        (Envelope(b"x" * (LONGEST_MESSAGE + 1)), "is longer than 32,000,000 bytes"),
    ],
)
def test_a_body_that_is_not_a_text_of_bounded_length_is_malformed(envelope: Envelope, fault: str) -> None:
    """It is not even decoded."""
    with pytest.raises(MalformedMessageError, match=fault):
        read_json_body(envelope)


def build_header(headers: bytes) -> bytes:
    """The frame of AMQP that comes before a body of one byte, with a table of headers."""
    return struct.pack(">HxxQH", 60, 1, 1 << 13) + struct.pack(">I", len(headers)) + headers


@pytest.mark.parametrize("levels", [2_000, 20_000])
def test_headers_of_amqp_that_are_nested_too_deep_raise_nothing(levels: int) -> None:
    """Such a message is dropped, as it is of no type."""
    build_app("amqp://host", MESSAGE_KEY)
    headers = b""
    for _ in range(levels):
        headers = b"\x01aF" + struct.pack(">I", len(headers)) + headers
    message = AMQP.Message()
    message.inbound_header(build_header(headers))  # some versions of Python have the stack for it
    assert "content_type" not in message.properties
    message.inbound_header(build_header(b"\x01at\x01"))
    assert message.properties == {"application_headers": {"a": True}}


DEEP = {levels: "[" * levels + "]" * levels for levels in (90, 101, 990, 1_010, 100_000)}


@pytest.mark.parametrize("levels", DEEP)
def test_an_envelope_of_redis_that_is_nested_too_deep_is_refused(levels: int) -> None:
    """By one error that a channel survives, however much of the stack is left."""
    build_app("redis://host", MESSAGE_KEY)
    envelope = f'{{"body": {DEEP[levels]}}}'
    if levels < 100:
        assert REDIS.loads(envelope).keys() == {"body"}
        return
    with pytest.raises(ValueError, match=r"^is nested too deep$"):
        REDIS.loads(envelope)
