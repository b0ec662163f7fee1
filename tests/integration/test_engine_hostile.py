"""Servers that send without end, too much, too early or too little: the worker neither grows nor hangs."""

import asyncio
import resource
import time
from typing import Any

import pytest
from tests.kit.engine_worker import EngineWorker, count
from tests.kit.hostile_server import Exchange, Script, Serve, always, build_response

from oku_core.spec import Engine, Spec

OK = build_response(body=b"hi")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 1, "timeout_s": 5.0}
    return Spec(urls=(f"{url}/{{i}}",), engine=engine, **(fields | changes))


def without_end(start: bytes, again: bytes) -> Script:
    """Begin an answer, and go on with the same for ever, as fast as it is read."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(start)
        while not exchange.transport.is_closing():
            if exchange.transport.get_write_buffer_size() < MIB:
                await exchange.send(again)
            await asyncio.sleep(0.001)  # the client has to live in this process, too

    return script


ENDLESS: dict[str, tuple[Script, set[str]]] = {
    # So few at a time because aiohttp takes long for each: the other requests must find it idle now and then.
    "interim responses": (
        without_end(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20), {"protocol_error", "timeout"},
    ),
    "headers": (without_end(b"HTTP/1.1 200 OK\r\n", b"More: x\r\n" * 1000), {"protocol_error"}),
    "one header": (without_end(b"HTTP/1.1 200 OK\r\nLong: ", b"x" * 10_000), {"protocol_error"}),
    "status line": (without_end(b"HTTP/1.1 200 ", b"x" * 10_000), {"protocol_error"}),
    "blank lines": (without_end(b"", b"\r\n" * 5000), {"protocol_error", "timeout"}),
    "trailers": (without_end(CHUNKED + b"0\r\n", b"More: x\r\n" * 1000), {"protocol_error", "timeout"}),
    "one trailer": (without_end(CHUNKED + b"0\r\nLong: ", b"x" * 10_000), {"protocol_error", "timeout"}),
    "chunk extension": (without_end(CHUNKED + b"1;", b"x" * 10_000), {"protocol_error", "timeout"}),
    "chunks of one byte": (without_end(CHUNKED, b"1\r\nx\r\n" * 2000), {"timeout"}),
    "body": (without_end(b"HTTP/1.0 200 OK\r\n\r\n", b"x" * 100_000), {"timeout"}),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDLESS)
async def test_what_has_no_end(engine: Engine, worker: EngineWorker, serve: Serve, case: str) -> None:
    """It ends with the request's time at the latest, takes no memory, and the next request is answered."""
    script, outcomes = ENDLESS[case]

    async def mixed(exchange: Exchange) -> None:
        await (script if exchange.request.target == "/0" else always(OK))(exchange)

    server = await serve(mixed)
    spec = build_spec(engine, server.url, timeout_s=1.0, concurrency=2)
    await worker.run(spec, 1, start=5)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started_at = time.monotonic()

    report = await worker.run(spec, 101)

    outcome = set(count(report)) - {"ok"}
    assert count(report)["ok"] == 100
    assert outcome <= outcomes
    assert time.monotonic() - started_at < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 30 * 1024


@pytest.mark.parametrize(
    ("length", "outcome"),
    [
        (2**62, "disconnected"),
        (2**64, "protocol_error"),
        (10**30, "protocol_error"),
        ("9" * 1000, "protocol_error"),
        ("0x10", "protocol_error"),
        ("+5", "protocol_error"),
        ("1_0", "protocol_error"),
    ],
    ids=str,
)
async def test_a_length_that_no_body_has(
    engine: Engine, worker: EngineWorker, serve: Serve, length: object, outcome: str
) -> None:
    """It is no number, or one that nobody waits for."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
    server = await serve(always(head + b"hi", then="close"))

    report = await worker.run(build_spec(engine, server.url), 5)

    assert count(report) == {outcome: 5}
    assert server.received == 5


@pytest.mark.parametrize("size", ["F" * 15, "1" + "0" * 16, "0" * 10_000 + "2", "-2", "2 2", "0x2"])
async def test_a_chunk_that_is_none(engine: Engine, worker: EngineWorker, serve: Serve, size: str) -> None:
    """A size that cannot be ends the request before its time, one that is only large does when it ends."""
    server = await serve(always(CHUNKED + f"{size}\r\nhi\r\n0\r\n\r\n".encode(), then="close"))

    report = await worker.run(build_spec(engine, server.url), 5)

    assert set(count(report)) <= {"protocol_error", "disconnected", "ok"}
    assert (count(report).get("ok", 0) == 5) == (report.bytes_received == 10)
    assert server.received == 5


async def test_an_answer_in_two_halves_around_the_limit(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """The second half is of no use, and answers nobody else."""

    async def script(exchange: Exchange) -> None:
        if exchange.request.target == "/0":
            await exchange.send(OK[:20], OK[20:], pause_s=1.0)
        else:
            await exchange.send(OK)

    server = await serve(script)

    report = await worker.run(build_spec(engine, server.url, timeout_s=0.6), 20)

    assert count(report) == {"timeout": 1, "ok": 19}
    assert server.targets == [f"/{index}" for index in range(20)]


async def test_answers_from_a_connection_that_was_given_up(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """What comes after the limit counts for nobody, whatever is sent meanwhile."""

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        if index % 2:
            await asyncio.sleep(1.5)
        await exchange.send(build_response("200 OK", b"x" * index))

    server = await serve(script)

    # The late ones need two limits to pass through: those of the first are answered during the second.
    report = await worker.run(build_spec(engine, server.url, timeout_s=1.0, concurrency=25), 100)

    assert count(report) == {"timeout": 50, "ok": 50}
    assert report.bytes_received == sum(range(0, 100, 2))


async def test_answers_in_one_segment(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The answer after the one that was asked for is that of no request."""

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        own = build_response("200 OK", b"x" * index)
        await exchange.send(own + build_response("200 OK", b"y" * 1000) if index % 2 else own)

    server = await serve(script)

    report = await worker.run(build_spec(engine, server.url), 100)

    assert set(count(report)) <= {"ok", "protocol_error"}
    assert report.outcomes[0] >= 50
    assert report.bytes_received in (sum(range(100)), sum(range(0, 100, 2)))
    assert server.targets == [f"/{index}" for index in range(100)]
