"""What aiohttp does on its own that would falsify the account, and that the engine keeps it from."""

import asyncio
from typing import Any

import pytest
from aiohttp import ThreadedResolver
from tests.kit.engine_worker import EngineWorker, count
from tests.kit.hostile_server import Exchange, Serve, always, build_response

from oku_core.spec import Engine, Spec

OK = build_response(body=b"hi")


def build_spec(url: str, **changes: Any) -> Spec:
    """What to send, with this engine."""
    return Spec(
        urls=(f"{url}/{{i}}",), engine=Engine.AIOHTTP, **({"concurrency": 1, "timeout_s": 5.0} | changes)
    )


@pytest.mark.parametrize(
    "surplus", [OK, b"surplus", build_response("408 Request Timeout")], ids=["answer", "nonsense", "408"]
)
async def test_what_comes_on_an_idle_connection_answers_nothing(
    worker: EngineWorker, serve: Serve, surplus: bytes
) -> None:
    """Who sends more than was asked for loses the connection; the next request gets an answer of its own."""
    is_idle = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        index = exchange.request.target[1:].encode()
        await exchange.send(build_response("200 OK", index))
        if server.received == 1:
            await is_idle.wait()
            await exchange.send(surplus)

    server = await serve(script)
    spec = build_spec(server.url, expect_status=("200",))

    first = await worker.run(spec, 1, start=7)
    is_idle.set()
    await asyncio.sleep(0.1)
    second = await worker.run(spec, 1, start=1234)

    assert (count(first), first.bytes_received) == ({"ok": 1}, 1)
    assert (count(second), second.bytes_received) == ({"ok": 1}, 4)
    assert server.targets == ["/7", "/1234"]
    assert server.connections == 2


async def test_a_name_with_several_addresses(
    worker: EngineWorker, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are tried until one of them answers; the request is sent to that one alone."""
    server = await serve(always(OK))

    async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        return [
            {"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": 0}
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.1")
        ]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)

    report = await worker.run(build_spec(f"http://several.invalid:{server.port}", concurrency=4), 40)

    assert count(report) == {"ok": 40}
    assert sorted(server.targets) == sorted(f"/{index}" for index in range(40))
