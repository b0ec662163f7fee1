"""Streams and connections of the engine for HTTP/2: how many there are, and what is sent again on others."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.kit.http2.frames import LARGEST_WINDOW, ErrorCode, Setting, build_goaway, build_headers
from tests.kit.http2.server import Http2Server, ServeHttp2, StreamExchange, always, stall
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

ALL_S = 10.0
MIB = 1 << 20


def build_spec(*urls: str, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": 10, "timeout_s": 20.0}
    return Spec(urls=tuple(Url(f"{url}/{{i}}") for url in urls), engine=Engine.NGHTTP2, **(fields | changes))


def list_reasons(account: LeaseAccount) -> dict[str, int]:
    """Why requests failed, and how many for each reason."""
    return {reason.reason: reason.requests for reason in account.part.reasons}


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


class Hall:
    """Holds requests until so many are there, and then answers all of them."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._held = 0
        self._passed = asyncio.Event()

    async def script(self, exchange: StreamExchange) -> None:
        """Hold one."""
        passed = self._passed
        self._held += 1
        if self._held == self._wanted:
            self._held, self._passed = 0, asyncio.Event()
            passed.set()
        await passed.wait()
        await exchange.respond(body=b"hi")


@pytest.mark.parametrize(
    ("fields", "connections", "most_open", "at_once"),
    [
        ({"concurrency": 30}, 3, 10, 30),
        ({"concurrency": 30, "streams": 100}, 1, 30, 30),
        ({"concurrency": 4, "streams": 1}, 4, 1, 4),
        ({"concurrency": 100, "streams": 5, "connections": 2}, 2, 5, 10),
        ({"concurrency": 100, "streams": 20, "connections": 1}, 1, 20, 20),
    ],
    ids=str,
)
async def test_streams_and_connections_are_those_of_the_spec(
    worker: EngineWorker,
    serve_http2: ServeHttp2,
    fields: dict[str, int],
    connections: int,
    most_open: int,
    at_once: int,
) -> None:
    """They are filled and never exceeded, and each connection is used again and again."""
    server = await serve_http2(Hall(at_once).script)

    account = await worker.run(build_spec(server.url, **fields), 5 * at_once)

    assert count(account) == {"ok": 5 * at_once}
    assert (server.connections, server.most_at_once) == (connections, at_once)
    assert {connection.session.most_open for connection in server.made} == {most_open}


@pytest.mark.parametrize("most", [1, 3])
async def test_no_more_streams_than_the_server_allows(
    worker: EngineWorker, serve_http2: ServeHttp2, most: int
) -> None:
    """The rest waits; on the only connection if there may be no other."""
    server = await serve_http2(Hall(most).script, settings={Setting.MAX_CONCURRENT_STREAMS: most})

    account = await worker.run(build_spec(server.url, connections=1), 30)

    assert count(account) == {"ok": 30}
    assert (server.connections, server.made[0].session.most_open) == (1, most)


async def test_more_connections_where_the_server_allows_few_streams(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """The concurrency is reached with more of them, unless the spec says how many there are."""
    server = await serve_http2(Hall(12).script, settings={Setting.MAX_CONCURRENT_STREAMS: 3})

    account = await worker.run(build_spec(server.url, concurrency=12), 60)

    assert count(account) == {"ok": 60}
    assert (server.connections, server.most_at_once) == (4, 12)


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


async def test_a_limit_of_none_for_a_while(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """Nothing is sent until there is room again, and nothing has failed meanwhile."""
    seen: list[int] = []

    async def script(exchange: StreamExchange) -> None:
        session = exchange.session
        if exchange.turn == 9:
            session.change_settings({Setting.MAX_CONCURRENT_STREAMS: 0})
            await wait_until(lambda: session.is_confirmed)
            await asyncio.sleep(0.2)
            seen.append(server.received)
            session.change_settings({Setting.MAX_CONCURRENT_STREAMS: 4})
        await exchange.respond(body=b"hi")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, connections=1), 40)

    assert count(account) == {"ok": 40}
    assert seen[0] < 40


async def test_several_origins_have_connections_of_their_own(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """Each index goes to the origin whose turn it is."""
    servers = [await serve_http2(always()) for _ in range(3)]

    account = await worker.run(
        build_spec(*(server.url for server in servers), connections=2, streams=2), 300, start=90
    )

    assert count(account) == {"ok": 300}
    for turn, server in enumerate(servers):
        assert sorted(server.targets) == sorted(f"/{i}" for i in range(90, 390) if i % 3 == turn)
        assert 1 <= server.connections <= 2


async def test_a_refused_stream_is_sent_again(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """The server has not looked at it; each index is answered once, and counts once."""
    served, refused = Served(), set[int]()

    async def script(exchange: StreamExchange) -> None:
        if exchange.index % 3 == 0 and exchange.index not in refused:
            refused.add(exchange.index)
            exchange.refuse()
        else:
            await served.answer(exchange)

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 300)

    assert (count(account), account.given_back) == ({"ok": 300}, [])
    assert server.received == 400
    served.check(300)


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


async def test_a_stream_that_is_always_refused_fails(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """It is sent a few times and not for ever."""

    async def script(exchange: StreamExchange) -> None:
        exchange.refuse()

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 50)

    assert count(account) == {"disconnected": 50}
    assert list_reasons(account) == {"stream refused": 50}
    times = Counter(server.targets)
    assert len(times) == 50
    assert all(1 < each <= 10 for each in times.values())


async def test_a_refused_request_has_its_body_again(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """What is sent again is the same."""
    refused = set[int]()

    async def script(exchange: StreamExchange) -> None:
        if exchange.index not in refused:
            refused.add(exchange.index)
            exchange.refuse()
        else:
            await exchange.respond(body=exchange.request.body)

    server = await serve_http2(script)
    spec = build_spec(server.url, method="POST", body="index {i}", expect_body=("index {i}",))

    account = await worker.run(spec, 20)

    assert count(account) == {"ok": 20} or set(count(account)) == {"failed_check"}
    assert sorted(request.body for request in server.requests) == sorted(
        [b"index %d" % index for index in range(20)] * 2
    )


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


async def test_a_goaway_lets_what_is_in_flight_end(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """A server that is about to leave says so twice: first that, and then with which request."""
    served = Served()

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == 9:
            exchange.send(build_goaway(LARGEST_WINDOW))
            await asyncio.sleep(0.05)
            exchange.session.go_away()
        await asyncio.sleep(0.1)
        await served.answer(exchange)

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 100)

    assert (count(account), server.received) == ({"ok": 100}, 100)
    served.check(100)
    assert server.connections >= 5


async def test_a_goaway_that_has_looked_at_nothing(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """All that is in flight is sent again, on another connection."""
    served = Served()

    async def script(exchange: StreamExchange) -> None:
        if exchange.connection is not server.made[0]:
            await served.answer(exchange)
        elif exchange.turn == 9:
            exchange.session.go_away(0)

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 100)

    assert (count(account), server.connections) == ({"ok": 100}, 2)
    served.check(100)


async def test_a_connection_that_ends_after_a_goaway(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """What the server may have looked at is not sent again."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.connection is not server.made[0]:
            await exchange.respond(body=b"hi")
        elif exchange.turn == 9:
            # The first four streams are 1, 3, 5 and 7.
            exchange.session.go_away(7, ErrorCode.INTERNAL_ERROR)
            exchange.hang_up()

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 50)

    assert count(account) == {"disconnected": 4, "ok": 46}
    assert server.received == 50 + 6


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_that_ends_with_requests_in_flight(
    worker: EngineWorker, serve_http2: ServeHttp2, end: str
) -> None:
    """Each of them is disconnected, and was sent once; others follow on another connection."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn < 9:
            return
        if end == "close":
            exchange.hang_up()
        else:
            exchange.reset()

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 50)

    assert count(account) == {"disconnected": 50}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(50))
    assert server.connections == 5


@pytest.mark.parametrize("code", [code for code in ErrorCode if code != ErrorCode.REFUSED_STREAM])
async def test_a_stream_that_is_reset_says_why(
    worker: EngineWorker, serve_http2: ServeHttp2, code: ErrorCode
) -> None:
    """The reason names the error; it is not sent again, and the connection stays."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.index % 2:
            exchange.reset_stream(code)
        else:
            await exchange.respond(body=b"hi")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url), 40)

    assert count(account) == {"ok": 20, "disconnected": 20}
    [reason] = list_reasons(account)
    assert code.name in reason
    assert (server.received, server.connections) == (40, 1)


async def test_a_timeout_leaves_its_connection(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """The stream is reset, and all others go on."""

    async def script(exchange: StreamExchange) -> None:
        if exchange.index % 10 == 5:
            await stall(exchange)
        await exchange.respond(body=b"hi")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, timeout_s=0.8), 50)

    assert count(account) == {"timeout": 5, "ok": 45}
    assert (server.received, server.connections) == (50, 1)
    reset = [stream.reset for stream in server.made[0].session.streams.values() if stream.reset is not None]
    assert reset == [ErrorCode.CANCEL] * 5


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


async def test_a_stop_at_once_leaves_the_connection(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """What is in flight is reset and given back; the next lease goes over the same connection."""
    is_open = asyncio.Event()

    async def script(exchange: StreamExchange) -> None:
        if exchange.index >= 5 and not is_open.is_set():
            await is_open.wait()
        await exchange.respond(body=b"hi")

    server = await serve_http2(script)
    spec = build_spec(server.url)
    running = asyncio.ensure_future(worker.run(spec, 1000))
    await wait_until(lambda: server.received == 15)

    worker.stop(grace_s=0)
    account = await running
    is_open.set()
    second = await worker.run(spec, 100, start=5000)

    assert (count(account), account.given_back) == ({"ok": 5}, list(range(5, 15)))
    assert count(second) == {"ok": 100}
    assert server.connections == 1
    states = server.made[0].session.streams.values()
    assert [stream.reset for stream in states].count(ErrorCode.CANCEL) == 10


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
