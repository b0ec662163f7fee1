"""What the engine for HTTP/2 makes of answers, well-formed and malformed, as RFC 9113 has it."""

import asyncio
import time
from typing import Any

import pytest
from tests.kit.http2.answers import FLOODS, GREETINGS, INVALID, VALID, Fate, Invalid, Valid
from tests.kit.http2.frames import build_settings
from tests.kit.http2.server import Connection, ServeHttp2, StreamExchange
from tests.kit.workers.engine_worker import EngineWorker, count
from tests.kit.workers.measured_worker import measure

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.url import Url

REQUESTS = 3
WARM_UP = 60
WARM_UP_TARGET = "/1000"
MOST_GROWTH_KIB = 24 * 1024
"""With 20 requests at a time."""
MIB = 1 << 20


def build_spec(url: str, **changes: Any) -> Spec:
    """What to send, one after the other; every status is expected, and a timeout stands out."""
    fields: dict[str, Any] = {
        "concurrency": 1,
        "timeout_s": 20.0,
        "expect_status": tuple(ExpectedStatus(f"{digit}xx") for digit in range(1, 6)),
    }
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=Engine.NGHTTP2, **(fields | changes))


async def run_row(
    worker: EngineWorker, serve_http2: ServeHttp2, row: Valid | Invalid, **how: Any
) -> tuple[Any, int]:
    """The account of some requests that are all answered so, and how many connections were made."""

    async def script(exchange: StreamExchange) -> None:
        content = row.build(exchange.stream)
        pieces = [content[at : at + 1] for at in range(len(content))] if how.get("is_cut") else [content]
        for piece in pieces:
            exchange.send(piece)
            if len(pieces) > 1:
                await asyncio.sleep(0)

    server = await serve_http2(script)
    account = await worker.run(build_spec(server.url, method=row.method), REQUESTS)
    assert server.targets == [f"/{index}" for index in range(REQUESTS)]
    return account, server.connections


def check_fate(fate: Fate, connections: int) -> None:
    """The connection was used again, or was not."""
    if fate != Fate.EITHER:
        assert connections == (1 if fate == Fate.KEPT else REQUESTS)


@pytest.mark.parametrize("name", VALID)
async def test_what_is_valid_is_accepted(worker: EngineWorker, serve_http2: ServeHttp2, name: str) -> None:
    """Status and length are those of the table, and its connection is used again as the table says."""
    row = VALID[name]

    account, connections = await run_row(worker, serve_http2, row)

    assert count(account) == {"ok": REQUESTS}
    assert account.part.statuses == {str(row.status): REQUESTS}
    assert account.part.bytes_received == row.size * REQUESTS
    check_fate(row.fate, connections)


@pytest.mark.parametrize("name", ["a length", "trailers", "103 twice", "padding", "a head in pieces"])
async def test_frames_arrive_however_they_are_cut(
    worker: EngineWorker, serve_http2: ServeHttp2, name: str
) -> None:
    """The borders of segments are not those of frames."""
    row = VALID[name]

    account, connections = await run_row(worker, serve_http2, row, is_cut=True)

    assert (count(account), account.part.bytes_received) == ({"ok": REQUESTS}, row.size * REQUESTS)
    assert connections == 1


@pytest.mark.parametrize("name", INVALID)
async def test_what_is_invalid_is_refused(worker: EngineWorker, serve_http2: ServeHttp2, name: str) -> None:
    """It ends as the table says, at once, and was requested once."""
    row = INVALID[name]

    account, connections = await run_row(worker, serve_http2, row)

    assert count(account) == {row.outcome: REQUESTS}
    check_fate(row.fate, connections)


@pytest.mark.parametrize("name", [name for name, row in INVALID.items() if row.fate == Fate.KEPT])
async def test_a_fault_of_one_stream_is_not_that_of_others(
    worker: EngineWorker, serve_http2: ServeHttp2, name: str
) -> None:
    """Requests beside it on the same connection are answered."""
    row = INVALID[name]
    others: list[StreamExchange] = []

    async def script(exchange: StreamExchange) -> None:
        if exchange.index % 5:
            others.append(exchange)
        else:
            exchange.send(row.build(exchange.stream))
        if len(others) == 4:
            waiting, others[:] = list(others), []
            for each in waiting:
                await each.respond(body=b"hi" if row.method != "HEAD" else b"")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, method=row.method, concurrency=5), 20)

    assert count(account) == {"ok": 16, row.outcome: 4}
    assert server.connections == 1


@pytest.mark.parametrize("name", [name for name, row in INVALID.items() if row.fate == Fate.ENDED])
async def test_a_fault_of_a_connection_is_that_of_all_its_streams(
    worker: EngineWorker, serve_http2: ServeHttp2, name: str
) -> None:
    """Whatever is in flight on it ends so; other connections go on."""
    row = INVALID[name]

    async def script(exchange: StreamExchange) -> None:
        if exchange.turn == 4 and exchange.connection is server.made[0]:
            exchange.send(row.build(exchange.stream))
        elif exchange.connection is not server.made[0]:
            await exchange.respond(body=b"hi")

    server = await serve_http2(script)

    account = await worker.run(build_spec(server.url, concurrency=5, connections=1), 20)

    assert count(account) == {row.outcome: 5, "ok": 15}
    assert server.connections == 2


@pytest.mark.parametrize("name", GREETINGS)
async def test_a_server_that_does_not_begin_as_one_of_http2(
    worker: EngineWorker, serve_http2: ServeHttp2, name: str
) -> None:
    """Nothing is requested of it, and each request ends as the table says."""
    greeting = GREETINGS[name]
    kinds = set()

    async def play(connection: Connection) -> None:
        connection.send(greeting.content)
        if greeting.hangs_up:
            connection.close()
        while True:
            kinds.add((await connection.receive()).kind)

    server = await serve_http2(play=play)
    timeout_s = 0.5 if greeting.outcome == "timeout" else 20.0

    account = await worker.run(build_spec(server.url, concurrency=2, timeout_s=timeout_s), 4)

    assert count(account) == {greeting.outcome: 4}
    assert kinds.isdisjoint({0, 1}), "a request was sent"


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_takes_no_memory(worker: EngineWorker, serve_http2: ServeHttp2, name: str) -> None:
    """Each request ends in its time, and the worker grows by less than the bound."""
    flood = FLOODS[name]

    async def script(exchange: StreamExchange) -> None:
        if exchange.request.target.startswith(WARM_UP_TARGET):
            await exchange.respond(body=b"hi")
            return
        exchange.send(flood.first(exchange.stream))
        while not exchange.connection.is_closing:
            exchange.send(flood.again(exchange.stream))
            await exchange.connection.drain()
            await asyncio.sleep(0.001)

    server = await serve_http2(script)
    started_at = time.monotonic()

    measurement = await measure(
        build_spec(server.url, concurrency=20, timeout_s=1.0, streams=5), 20, warm_up=WARM_UP
    )

    assert sum(measurement.outcomes.values()) == 20
    assert set(measurement.outcomes) <= flood.outcomes
    assert measurement.growth_kib < MOST_GROWTH_KIB
    assert time.monotonic() - started_at < 40


async def test_settings_that_come_late(worker: EngineWorker, serve_http2: ServeHttp2) -> None:
    """No request is sent before the server has said what it allows."""

    async def greet(_: Connection) -> None:
        await asyncio.sleep(0.3)

    async def script(exchange: StreamExchange) -> None:
        await exchange.respond(body=b"hi")

    server = await serve_http2(script, greet=greet, settings={3: 2})

    account = await worker.run(build_spec(server.url, concurrency=2), 10)

    assert count(account) == {"ok": 10}
    assert server.connections == 1


async def test_settings_before_an_answer_are_confirmed_in_turn(
    worker: EngineWorker, serve_http2: ServeHttp2
) -> None:
    """Each SETTINGS frame has its own confirmation."""

    async def play(connection: Connection) -> None:
        connection.send(build_settings() * 3)
        confirmed = 0
        while confirmed < 3:
            frame = await connection.receive()
            confirmed += frame.kind == 4 and frame.flags & 1
        confirmations.append(confirmed)
        while (frame := await connection.receive()).kind != 1:
            pass
        connection.send(VALID["a head and a body"].build(frame.stream))
        await connection.receive()

    confirmations: list[int] = []
    server = await serve_http2(play=play)

    account = await worker.run(build_spec(server.url), 1)

    assert (count(account), confirmations) == ({"ok": 1}, [3])
