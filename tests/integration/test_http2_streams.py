"""Streams and connections of the engine for HTTP/2 over real sockets; its unit tests count them in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.http2.frames import Setting, build_headers
from tests.kit.http2.server import Http2Server, ServeHttp2, StreamExchange, always
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

ALL_S = 10.0
MIB = 1 << 20


def build_spec(*urls: str, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": 10, "timeout_s": 20.0}
    return Spec(urls=tuple(Url(f"{url}/{{i}}") for url in urls), engine=Engine.NGHTTP2, **(fields | changes))


async def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for something on the server's side."""
    async with asyncio.timeout(ALL_S):
        while not is_so():  # noqa: ASYNC110  # many things are waited for, and none of them has an event
            await asyncio.sleep(0.002)


class Served:
    """Answers requests, and knows which it has answered."""

    def __init__(self) -> None:
        self.indices: Counter[int] = Counter()

    async def answer(self, exchange: StreamExchange) -> None:
        """Answer one."""
        self.indices[exchange.index] += 1
        await exchange.respond(body=b"hi")

    def check(self, requests: int) -> None:
        """Each index was answered once."""
        assert self.indices == Counter(range(requests))


async def test_a_limit_that_changes_while_requests_are_sent(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """It holds from when it is confirmed, lower and higher; what is open stays open."""
    limits = {20: 1, 40: 6, 60: 2, 80: 10}
    most_open: Counter[int] = Counter()

    async def script(exchange: StreamExchange) -> None:
        session = exchange.session
        if exchange.turn + 1 in limits:
            session.change_settings({Setting.MAX_CONCURRENT_STREAMS: limits[exchange.turn + 1]})
        phase = exchange.turn // 20
        if 20 * phase + 12 < exchange.turn:  # the streams from before have ended
            most_open[phase] = max(most_open[phase], len(session.open_streams))
        await asyncio.sleep(0.003)
        await exchange.respond(body=b"hi")

    server = await serve_http2(script, settings={Setting.MAX_CONCURRENT_STREAMS: 10})

    account = await worker.run(build_spec(server.url, connections=1), 100)

    assert count(account) == {"ok": 100}
    assert (most_open[1], most_open[3]) == (1, 2)
    assert (most_open[2] > 1, most_open[4] > 2) == (True, True)


async def test_a_refused_stream_goes_to_another_connection(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """One connection that refuses everything fails nothing as long as there are others."""
    served = Served()

    async def script(exchange: StreamExchange) -> None:
        if exchange.connection is server.made[0]:
            exchange.refuse()
            return
        await asyncio.sleep(0.002)
        await served.answer(exchange)

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, concurrency=6, streams=2, connections=3), 100)

    assert count(account) == {"ok": 100}
    served.check(100)


@pytest.mark.parametrize(("every", "streams"), [(1, 1), (10, 10)])
async def test_a_server_that_takes_only_so_many_requests_on_a_connection(
    worker: EngineWorker, serve_http2: ServeHttp2, every: int, streams: int
) -> None:
    """What it says it has not looked at goes to the next connection: each index is answered once."""
    served = Served()

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == every - 1:
            exchange.session.go_away(exchange.stream)
        await served.answer(exchange)

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, connections=1, streams=streams), 200)

    assert (count(account), account.given_back) == ({"ok": 200}, [])
    served.check(200)
    assert 200 / (every + streams) <= server.connections <= 200 / every + 1
    await wait_until(lambda: server.open_connections <= 1)


async def send_late(exchange: StreamExchange, size: int) -> None:
    """Answer although the client has given up, as far as its windows allow."""
    session = exchange.session
    exchange.send(build_headers(exchange.stream, [(":status", "200")]))
    while size:
        moved, room = session.moved, min(size, session.find_room(exchange.stream))
        if room:
            session.send_data(exchange.stream, bytes(room), end=room == size)
            size -= room
        else:
            await moved.wait()


async def test_answers_to_streams_that_were_given_up(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """They do not count, harm nobody, and take nothing away from the window of the connection."""
    given_up: list[StreamExchange] = []
    size = 100_000

    async def script(exchange: StreamExchange) -> None:
        if exchange.index < 20:
            given_up.append(exchange)
            return
        if exchange.index == 100:
            # Together they are more than the connection takes at once.
            await wait_until(lambda: all(late.is_given_up for late in given_up))
            for late in given_up:
                await send_late(late, MIB - 1)
        await exchange.respond(body=bytes(size))

    server = await serve_http2(script)
    spec = build_spec(server.url, concurrency=30, streams=30, timeout_s=1.0)

    first = await worker.run(spec, 100)
    second = await worker.run(spec, 100, start=100)

    assert (count(first), count(second)) == ({"timeout": 20, "ok": 80}, {"ok": 100})
    assert second.part.bytes_received == 100 * size
    assert server.connections == 1


@pytest.mark.parametrize("how", ["goaway", "close", "reset"])
async def test_a_server_that_ends_idle_connections(
    worker: EngineWorker, serve_http2: ServeHttp2, how: str
) -> None:
    """They are made anew for the next requests, and the account shows nothing of it."""
    server: Http2Server = await serve_http2(always())
    for turn in range(4):
        assert count(await worker.run(build_spec(server.url), 40, start=40 * turn)) == {"ok": 40}
        for connection in server.made:
            if connection.is_closing:
                continue
            if how == "goaway":
                connection.session.go_away()
            elif how == "close":
                connection.close()
            else:
                connection.reset()
        await wait_until(lambda: server.is_quiet)
        for _ in range(3):
            await asyncio.sleep(0.001)
            worker.build_progress()  # a turn of the worker's event loop

    assert server.received == 160
    assert server.connections >= 4
