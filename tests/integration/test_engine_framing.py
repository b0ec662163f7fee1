"""Where one response ends and the next begins, however the bytes arrive."""

import asyncio
from typing import Any

import pytest
from tests.kit.servers.hostile_server import Exchange, Serve, build_response
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.url import Url

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

RESPONSES: dict[str, tuple[bytes, int, int]] = {
    "a length": (build_response(body=b"hi"), 200, 2),
    "an empty body": (build_response("500 Oops"), 500, 0),
    "chunks": (CHUNKED + b"2\r\nhi\r\n1;x=y\r\n!\r\n0\r\n\r\n", 200, 3),
    "chunks with a trailer": (CHUNKED + b"2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n", 200, 2),
    "no body": (b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n", 204, 0),
    "no body with a length": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, 0),
    "an interim response": (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + build_response(body=b"hi"), 200, 2),
    "a body like a response": (build_response("201 Created", build_response(body=b"hi")), 201, 40),
}  # fmt: skip


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 10, "timeout_s": 10.0}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


@pytest.mark.parametrize("case", RESPONSES)
async def test_a_response_cut_at_every_place(
    engine: Engine, worker: EngineWorker, serve: Serve, case: str
) -> None:
    """It means the same as in one piece, and the connection is used again each time."""
    response, status, size = RESPONSES[case]

    async def script(exchange: Exchange) -> None:
        place = int(exchange.request.target[1:]) // 2 % len(response)
        if int(exchange.request.target[1:]) % 2:
            await exchange.send(response)
        else:
            await exchange.send(response[:place], response[place:], pause_s=0.001)

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url), 2 * len(response))

    assert account.part.statuses == {str(status): 2 * len(response)}
    assert account.part.bytes_received == 2 * len(response) * size
    assert server.connections == 10


async def test_more_kinds_of_responses_than_anybody_remembers(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Short and long ones come again and again, each with its own bytes."""
    statuses = (200, 201, 202, 404, 500)

    async def script(exchange: Exchange) -> None:
        index = int(exchange.request.target[1:])
        kind = index % 700
        await exchange.send(build_response(f"{statuses[kind % 5]} Any", b"x" * (3 * kind), f"X-Kind: {kind}"))

    server = await serve(script)

    account = await worker.run(build_spec(engine, server.url), 2100)

    assert account.part.statuses == {str(status): 420 for status in statuses}
    assert account.part.bytes_received == 3 * sum(3 * kind for kind in range(700))


@pytest.mark.parametrize("surplus", [b"x", b"HTTP/1.1 200 OK\r\n", build_response("200 OK", b"y" * 1000)])
async def test_what_follows_in_the_same_piece(
    engine: Engine, worker: EngineWorker, serve: Serve, surplus: bytes
) -> None:
    """It changes nothing in what came before it, known or not, and answers no other request."""
    response = build_response("404 Not Found", b"sorry")

    async def script(exchange: Exchange) -> None:
        await exchange.send(response + surplus * (int(exchange.request.target[1:]) % 3 == 0))
        await asyncio.sleep(0)

    server = await serve(script)

    account = await worker.run(
        build_spec(engine, server.url, concurrency=1, expect_status=(ExpectedStatus("404"),)), 150
    )

    # An engine may see the surplus or hang up before it does.
    assert set(count(account)) <= {"ok", "protocol_error"}
    assert count(account)["ok"] >= 100
    assert account.part.statuses == {"404": count(account)["ok"]}
    assert account.part.bytes_received == 5 * count(account)["ok"]
    assert server.targets == [f"/{index}" for index in range(150)]
