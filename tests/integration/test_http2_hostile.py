"""Servers of HTTP/2 that are of little use: each request ends once, and nobody is asked without end."""

import asyncio
from typing import Any

import pytest
from tests.kit.http2.frames import (
    ACK,
    LARGEST_WINDOW,
    WINDOW,
    ErrorCode,
    Kind,
    Setting,
    build_frame,
    build_goaway,
    build_headers,
    build_settings,
    build_settings_ack,
    build_window_update,
)
from tests.kit.http2.server import Connection, ServeHttp2, StreamExchange, always
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

MIB = 1 << 20
WIDE = build_settings({Setting.INITIAL_WINDOW_SIZE: LARGEST_WINDOW}) + build_window_update(
    0, LARGEST_WINDOW - WINDOW
)
"""What a server says that has room for everything."""


def build_spec(url: str, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": 10, "timeout_s": 20.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=Engine.NGHTTP2, **(fields | changes))


def list_reasons(account: LeaseAccount) -> dict[str, int]:
    """Why requests failed, and how many for each reason."""
    return {reason.reason: reason.requests for reason in account.part.reasons}


@pytest.mark.parametrize(
    ("greeting", "hangs_up"),
    [
        (build_settings() + build_goaway(0), False),
        (build_settings() + build_goaway(0), True),
        (build_settings({Setting.MAX_CONCURRENT_STREAMS: 0}), True),
    ],
    ids=["GOAWAY", "GOAWAY and the end", "no streams and the end"],
)
async def test_a_server_that_ends_each_connection_before_it_takes_a_request(
    worker: EngineWorker, serve_http2: ServeHttp2, greeting: bytes, *, hangs_up: bool
) -> None:
    """It is asked a few times for each request, as one that refuses streams, and not for ever."""

    async def play(connection: Connection) -> None:
        connection.send(greeting)
        if hangs_up:
            connection.close()
        while True:
            await connection.receive()

    server = await serve_http2(play=play)

    account = await worker.run(build_spec(server.url, concurrency=3), 20)

    assert count(account) == {"disconnected": 20}
    assert list_reasons(account) == {"the server hung up": 20}
    assert 20 < server.connections <= 20 * 6


async def test_a_server_that_allows_no_streams(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """Requests time out, and other connections are tried."""
    server = await serve_http2(always(), settings={Setting.MAX_CONCURRENT_STREAMS: 0})

    account = await worker.run(build_spec(server.url, concurrency=20, timeout_s=0.3), 8)

    assert count(account) == {"timeout": 8}
    assert (server.received, server.open_connections <= 2) == (0, True)


async def test_headers_that_are_too_long(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """However many requests end before they are sent, each does so once, and others of the worker go on."""
    server = await serve_http2(always())
    header = Header("X-Long: " + "x" * 2 * MIB)

    account = await worker.run(build_spec(server.url, headers=(header,)), 4000)

    assert count(account) == {"connect_error": 4000}
    assert list_reasons(account) == {"the headers of the request are too long": 4000}
    assert (server.received, server.connections) == (0, 1)


async def test_limits_that_differ_from_connection_to_connection(
    worker: EngineWorker, serve_http2: ServeHttp2, caplog: pytest.LogCaptureFixture
) -> None:
    """Each connection keeps to its own; the log has each that is lower than those before, once."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == 0:
            limit = 3 + server.made.index(exchange.connection) % 2
            exchange.session.change_settings({Setting.MAX_CONCURRENT_STREAMS: limit})
        await asyncio.sleep(0.001 * (exchange.index % 3))
        await exchange.respond(body=b"hi")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, concurrency=20), 1000)

    assert count(account) == {"ok": 1000}
    told = [message for message in caplog.messages if "streams at a time" in message]
    assert [message.partition("allows ")[2][:9] for message in told] in (
        ["4 streams", "3 streams"],
        ["3 streams"],
    )


async def serve_wide(connection: Connection) -> None:
    """Answer each request; there is room for every body."""
    connection.send(WIDE)
    while True:
        frame = await connection.receive()
        if frame.kind == Kind.SETTINGS and not frame.flags & ACK:
            connection.send(build_settings_ack())
        if frame.ends_stream:
            connection.send(build_headers(frame.stream, [(":status", "200")], end=True))


async def test_requests_that_have_not_gone_out_when_a_server_leaves(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """A server that does not read leaves some of them with the worker: they go to another connection."""

    async def play(connection: Connection) -> None:
        if server.connections > 1:
            await serve_wide(connection)
            return
        connection.send(WIDE)
        frame = await connection.receive()
        while frame.kind != Kind.HEADERS:
            frame = await connection.receive()
        connection.pause()
        # The first answers let requests follow that find the way blocked.
        for stream in (1, 3, 5):
            connection.send(build_headers(stream, [(":status", "200")], end=True))
            await asyncio.sleep(0.05)
        connection.send(build_goaway(5))
        await asyncio.sleep(0.05)
        connection.resume()

    server = await serve_http2(play=play)

    account = await worker.run(build_spec(server.url, method="POST", body="x" * 8 * MIB), 15)

    assert count(account) == {"ok": 15}
    assert server.connections == 2


async def test_a_fault_after_a_goaway(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """What was in flight ends at once: its connection will bring nothing more."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == 9:
            exchange.send(build_goaway(exchange.stream, ErrorCode.INTERNAL_ERROR))
            await asyncio.sleep(0.05)
            exchange.send(build_frame(Kind.PING, bytes(8), stream=1))

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 20)

    assert count(account) == {"protocol_error": 20}
    assert server.connections == 2


async def test_a_fault_of_a_server_that_does_not_read(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """Nobody can tell it so; requests time out, and those that follow go to another connection."""

    async def play(connection: Connection) -> None:
        if server.connections > 1:
            await serve_wide(connection)
            return
        connection.send(WIDE)
        frame = await connection.receive()
        while frame.kind != Kind.HEADERS:
            frame = await connection.receive()
        connection.pause()
        await asyncio.sleep(0.1)
        connection.send(build_frame(Kind.PING, bytes(8), stream=1))

    server = await serve_http2(play=play)
    spec = build_spec(server.url, method="POST", body="x" * MIB, timeout_s=1.5)

    account = await worker.run(spec, 20)

    assert count(account) == {"timeout": 10, "ok": 10}
    assert server.connections == 2


async def test_a_server_that_says_nothing_keeps_no_requests_from_others(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """As many requests wait for it as it could have in flight, and time out together."""

    async def play(connection: Connection) -> None:
        while True:
            await connection.receive()

    silent, honest = await serve_http2(play=play), await serve_http2(always())
    urls = (Url(f"{silent.url}/{{i}}"), Url(f"{honest.url}/{{i}}"))
    spec = Spec(urls=urls, engine=Engine.NGHTTP2, concurrency=100, timeout_s=1.0)
    begun_s = asyncio.get_running_loop().time()

    account = await worker.run(spec, 400)

    assert count(account) == {"ok": 200, "timeout": 200}
    # Ten at a time, one for each connection that is being made, would take 20 s.
    assert asyncio.get_running_loop().time() - begun_s < 12
