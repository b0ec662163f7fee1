"""Every engine reads the same responses alike: as RFC 9112 has it, however their bytes arrive."""

import asyncio
import contextlib

import pytest
from tests.kit.servers.hostile_server import Exchange, Serve, build_response
from tests.kit.servers.responses import INVALID, VALID, Invalid, Valid
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.url import Url

LONG = 200


def cut(content: bytes) -> list[list[bytes]]:
    """In one piece twice, for the second one may be known; in two at every odd place; byte by byte."""
    length = len(content)
    places = range(1, length, 2) if length < LONG else (1, 16, length // 2, length - 3)
    pieces = [[content], [content], *([content[:place], content[place:]] for place in places)]
    if length < LONG:
        pieces.append([content[at : at + 1] for at in range(length)])
    return pieces


def build_spec(engine: Engine, url: str, row: Valid | Invalid, concurrency: int = 5) -> Spec:
    """What to send; every status is expected."""
    return Spec(
        urls=(Url(f"{url}/{{i}}"),),
        engine=engine,
        method=row.method,
        concurrency=concurrency,
        timeout_s=20.0,
        expect_status=tuple(ExpectedStatus(f"{digit}xx") for digit in range(1, 6)),
    )


async def send(exchange: Exchange, pieces: list[bytes]) -> None:
    """Send pieces apart, to a client that may hang up meanwhile."""
    with contextlib.suppress(ConnectionError):
        await exchange.send(*pieces, pause_s=0.0005)


@pytest.mark.parametrize("name", VALID)
async def test_what_is_valid_is_accepted(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str
) -> None:
    """Status and length are those of the table, and a connection is used again as the table says."""
    row = VALID[name]
    ways = cut(row.content)

    async def script(exchange: Exchange) -> None:
        await send(exchange, ways[int(exchange.request.target[1:])])
        if row.ends_by_close:
            exchange.hang_up()

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url, row), len(ways))

    outcome = "ok" if 100 <= row.status < 600 else "unexpected_status"
    assert count(account) == {outcome: len(ways)}
    assert account.part.statuses == {str(row.status): len(ways)}
    assert account.part.bytes_received == row.size * len(ways)
    assert server.received == len(ways)
    assert server.connections == (min(5, len(ways)) if row.is_kept else len(ways))


@pytest.mark.parametrize("name", INVALID)
async def test_what_is_invalid_is_refused(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str
) -> None:
    """It is a `protocol_error` at once, and was requested once."""
    row = INVALID[name]
    ways = cut(row.content)

    async def script(exchange: Exchange) -> None:
        await send(exchange, ways[int(exchange.request.target[1:])])

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url, row), len(ways))

    assert count(account) == {"protocol_error": len(ways)}
    assert server.received == len(ways)


@pytest.mark.parametrize("name", [name for name, row in VALID.items() if row.surplus])
@pytest.mark.parametrize("is_apart", [False, True])
async def test_what_is_too_much_answers_nobody(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str, *, is_apart: bool
) -> None:
    """The response counts, its connection is given up, and the next request gets an answer of its own."""
    row = VALID[name]
    is_late = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if server.received > 1:
            await exchange.send(build_response("555 Own"))
        elif is_apart:
            await exchange.send(row.content)
            await is_late.wait()
            await exchange.send(row.surplus)
        else:
            await exchange.send(row.content + row.surplus)

    server = await serve(script)
    spec = build_spec(engine, server.url, row, concurrency=1)

    first = await worker.run(spec, 1)
    is_late.set()
    for _ in range(3):
        await asyncio.sleep(0.001)
        worker.build_progress()  # a turn of the worker's event loop
    second = await worker.run(spec, 1, start=1)

    assert (first.part.statuses, first.part.bytes_received) == ({str(row.status): 1}, row.size)
    assert second.part.statuses == {"555": 1}
    assert server.connections == 2


@pytest.mark.parametrize(
    "name", ["a length", "chunks", "trailers", "100", "204", "HTTP/1.0 with a length", "LF alone, chunks"]
)
async def test_a_connection_that_is_closed_at_each_place(
    engine: Engine, worker: EngineWorker, serve: Serve, name: str
) -> None:
    """A response without its last byte does not count."""
    row = VALID[name]

    async def script(exchange: Exchange) -> None:
        await exchange.send(row.content[: int(exchange.request.target[1:])])
        exchange.hang_up()

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url, row), len(row.content))

    assert count(account) == {"disconnected": len(row.content)}
    assert server.received == len(row.content)
