"""Servers that send without end, too much, too early or too little: the worker neither grows nor hangs."""

import asyncio
import gzip
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.kit.servers.hostile_server import Exchange, Script, Serve, always, build_response, stall
from tests.kit.workers.engine_worker import EngineWorker, count
from tests.kit.workers.measured_worker import measure

from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.http.pattern_check import CHECK_MATCH, MATCH_TOO_EXPENSIVE

OK = build_response(body=b"hi")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20

Greet = Callable[[asyncio.Transport], None]
DRIPPING: set[asyncio.Future[None]] = set()
"""Kept, so that they are not collected."""


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 1, "timeout_s": 5.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


def without_end(start: bytes, again: bytes) -> Script:
    """Begin an answer, and go on with the same for ever, as fast as it is read."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(start)
        while not exchange.transport.is_closing():
            if exchange.transport.get_write_buffer_size() < MIB:
                await exchange.send(again)
            await asyncio.sleep(0.001)

    return script


async def drip(exchange: Exchange) -> None:
    """A byte now and then."""
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not exchange.transport.is_closing():
        await exchange.send(b"x")
        await asyncio.sleep(0.2)


async def set_cookies(exchange: Exchange) -> None:
    """Cookies that nobody has seen before, as many as a head takes."""
    number = exchange.request.target[1:]
    cookies = (f"Set-Cookie: c{number}x{i}={'v' * 1000}; Path=/" for i in range(50))
    await exchange.send(build_response("200 OK", b"hi", *cookies))


async def redirect_for_ever(exchange: Exchange) -> None:
    """Each time to another place, with a body behind it."""
    place = f"{exchange.request.target}/x"[-200:]
    await exchange.send(build_response("302 Found", b"x" * 100_000, f"Location: /{place.lstrip('/')}"))


@dataclass(frozen=True)
class Hostility:
    """Something that a server does, and what has to come of each request.

    Attributes:
        script: the answer to those that are measured.
        outcome: how they end.
        requests: how many.
        greet: what it does with their connections before they are sent.
        scheme: what they speak.
        fields: what else is in the spec.
        engines: those that can carry it out.
    """

    script: Script
    outcome: str
    requests: int = 20
    greet: Greet | None = None
    scheme: str = "http"
    fields: dict[str, Any] = field(default_factory=dict)
    engines: tuple[Engine, ...] = HTTP1_ENGINES


def drip_handshake(transport: asyncio.Transport) -> None:
    """The head of a TLS record, and then a byte of it now and then."""

    async def drip_bytes() -> None:
        transport.write(b"\x16\x03\x03\x40\x00\x02")
        while not transport.is_closing():
            transport.write(b"\0")
            await asyncio.sleep(0.2)

    DRIPPING.add(asyncio.ensure_future(drip_bytes()))


def greet(content: bytes) -> Greet:
    """Say something before anybody asks."""
    return lambda transport: transport.write(content)


BOMB = gzip.compress(bytes(MIB)) * 200
STATUS_LINE = b"HTTP/1.1 200 OK\r\n"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
HOSTILE: dict[str, Hostility] = {
    "endless interim responses": Hostility(without_end(b"", HINT * 5000), "protocol_error"),
    "endless headers": Hostility(without_end(STATUS_LINE, b"More: x\r\n" * 10_000), "protocol_error"),
    "endless header": Hostility(without_end(b"HTTP/1.1 200 OK\r\nLong: ", b"x" * MIB), "protocol_error"),
    "endless folded header": Hostility(
        without_end(b"HTTP/1.1 200 OK\r\nLong: x\r\n", b" x\r\n" * 10_000), "protocol_error"
    ),
    "endless name of a header": Hostility(without_end(STATUS_LINE, b"x" * MIB), "protocol_error"),
    "endless status line": Hostility(without_end(b"HTTP/1.1 200 ", b"x" * MIB), "protocol_error"),
    "endless blank lines": Hostility(without_end(b"", b"\r\n" * 5000), "protocol_error"),
    "endless trailers": Hostility(without_end(CHUNKED + b"0\r\n", b"More: x\r\n" * 10_000), "protocol_error"),
    "endless trailer": Hostility(without_end(CHUNKED + b"0\r\nLong: ", b"x" * MIB), "protocol_error"),
    "endless chunk extension": Hostility(without_end(CHUNKED + b"1;", b"x" * MIB), "protocol_error"),
    "endless zeros of a size": Hostility(without_end(CHUNKED, b"0" * MIB), "protocol_error"),
    "endless chunks of a byte": Hostility(without_end(CHUNKED, b"1\r\nx\r\n" * 2000), "timeout"),
    "endless chunk": Hostility(without_end(CHUNKED + b"F" * 15 + b"\r\n", b"x" * MIB), "timeout"),
    "chunk of 2**64 bytes": Hostility(
        without_end(CHUNKED + b"1" + b"0" * 16 + b"\r\n", b"x"), "protocol_error"
    ),
    "endless body": Hostility(without_end(b"HTTP/1.0 200 OK\r\n\r\n", b"x" * MIB), "timeout"),
    "a byte now and then": Hostility(drip, "timeout"),
    "endless answers": Hostility(without_end(OK, OK * 5000), "ok"),
    "a compressed bomb": Hostility(
        always(build_response("200 OK", BOMB, "Content-Encoding: gzip")), "ok"
    ),
    "a compressed bomb as transfer coding": Hostility(
        always(
            STATUS_LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(BOMB), BOMB),
        ),
        "ok",
    ),
    "ever more cookies": Hostility(
        set_cookies, "ok", 1000, fields={"cookies": True}, engines=(Engine.AIOHTTP,)
    ),
    "endless redirections": Hostility(
        redirect_for_ever, "protocol_error", fields={"max_redirects": 30}, engines=(Engine.AIOHTTP,)
    ),
    "a long greeting": Hostility(stall, "protocol_error", greet=greet(b"x" * 10 * MIB)),
    "a long greeting to TLS": Hostility(
        stall, "connect_error", greet=greet(b"\x16\x03\x03\x40\x00" * 2 * MIB), scheme="https"
    ),
    "a TLS message of 16 MiB": Hostility(
        stall,
        "connect_error",
        greet=greet(b"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + bytes(10 * MIB)),
        scheme="https",
    ),
    "a TLS handshake a byte now and then": Hostility(stall, "timeout", greet=drip_handshake, scheme="https"),
}  # fmt: skip
CLOSING = build_response("200 OK", b"hi", "Connection: close")
WARM_UP = 60
MOST_GROWTH_KIB = 24 * 1024
"""With 20 requests at a time: what is read of a connection at once is 256 KiB."""


@pytest.mark.parametrize(
    ("name", "engine"),
    [(name, engine) for name, hostility in HOSTILE.items() for engine in hostility.engines],
)
async def test_a_hostile_target_takes_no_memory(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str
) -> None:
    """Each request ends as it should, in its time, and the worker grows by less than the bound."""
    hostility = HOSTILE[name]

    async def script(exchange: Exchange) -> None:
        is_warm_up = exchange.request.target.startswith("/1000")
        await (always(CLOSING, then="close") if is_warm_up else hostility.script)(exchange)

    def welcome(transport: asyncio.Transport) -> None:
        if hostility.greet is not None and (server.received >= WARM_UP or hostility.scheme == "https"):
            hostility.greet(transport)

    server = await serve(script, greet=welcome)
    url = server.url.replace("http", hostility.scheme)
    spec = build_spec(engine, url, timeout_s=2.0, concurrency=20, **hostility.fields)
    started_at = time.monotonic()

    measurement = await measure(spec, hostility.requests, warm_up=WARM_UP)

    assert measurement.outcomes == {hostility.outcome: hostility.requests}
    assert measurement.growth_kib < MOST_GROWTH_KIB
    assert time.monotonic() - started_at < 40


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
    """It is not a number, or one that nobody waits for."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
    server = await serve(always(head + b"hi", then="close"))

    account = await worker.run(build_spec(engine, server.url), 5)

    assert count(account) == {outcome: 5}
    assert server.received == 5


@pytest.mark.parametrize("size", ["F" * 15, "1" + "0" * 16, "0" * 10_000 + "2", "-2", "2 2", "0x2"])
async def test_a_chunk_that_is_none(engine: Engine, worker: EngineWorker, serve: Serve, size: str) -> None:
    """A size that cannot end ends the request early; one that is only large does so when it ends."""
    server = await serve(always(CHUNKED + f"{size}\r\nhi\r\n0\r\n\r\n".encode(), then="close"))

    account = await worker.run(build_spec(engine, server.url), 5)

    assert set(count(account)) <= {"protocol_error", "disconnected", "ok"}
    assert (count(account).get("ok", 0) == 5) == (account.part.bytes_received == 10)
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

    account = await worker.run(build_spec(engine, server.url, timeout_s=0.6), 20)

    assert count(account) == {"timeout": 1, "ok": 19}
    assert server.targets == [f"/{index}" for index in range(20)]


async def test_answers_from_a_connection_that_was_given_up(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """What arrives after the limit does not count, whatever is sent meanwhile."""

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        if index % 2:
            await asyncio.sleep(1.5)
        await exchange.send(build_response("200 OK", b"x" * index))

    server = await serve(script)

    # The late ones need two limits to pass through: those of the first are answered during the second.
    account = await worker.run(build_spec(engine, server.url, timeout_s=1.0, concurrency=25), 100)

    assert count(account) == {"timeout": 50, "ok": 50}
    assert account.part.bytes_received == sum(range(0, 100, 2))


async def test_answers_in_one_segment(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """An answer that follows the one that was asked for belongs to no request."""

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        own = build_response("200 OK", b"x" * index)
        await exchange.send(own + build_response("200 OK", b"y" * 1000) if index % 2 else own)

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url), 100)

    assert set(count(account)) <= {"ok", "protocol_error"}
    assert account.outcomes[0] >= 50
    assert account.part.bytes_received in (sum(range(100)), sum(range(0, 100, 2)))
    assert server.targets == [f"/{index}" for index in range(100)]


async def test_a_pattern_at_its_worst_stops_no_worker(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """It is looked for in a few answers, for 0.3 s in each; the others say why it is not."""
    body = bytes(random.Random(1).choices(b"ab", k=MIB))
    server = await serve(always(build_response("200 OK", body)))
    spec = build_spec(engine, server.url, concurrency=20, timeout_s=30, expect_match=("a[ab]{48}c",))

    account = await worker.run(spec, 60)

    assert count(account) == {"failed_check": 60}
    assert {reason.reason for reason in account.part.reasons} == {CHECK_MATCH, MATCH_TOO_EXPENSIVE}
