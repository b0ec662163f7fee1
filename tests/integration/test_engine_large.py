"""Requests that are larger than what a socket takes at once."""

import asyncio
import hashlib
import resource
from typing import Any

import pytest
from tests.kit.servers.hostile_server import Exchange, Serve, always, build_response
from tests.kit.workers.engine_worker import EngineWorker, count

from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url

pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

OK = build_response(body=b"hi")
MIB = 1 << 20


def build_spec(engine: Engine, url: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 1, "timeout_s": 20.0, "method": "POST"}
    return Spec(urls=(Url(f"{url}/{{i}}"),), engine=engine, **(fields | changes))


async def test_large_bodies_arrive_whole(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """They follow each other on one connection, with small ones between them."""
    block = "".join(hashlib.sha256(b"%d" % number).hexdigest() for number in range(100_000))
    server = await serve(always(OK))
    large = build_spec(engine, server.url, body="{i}" + block)

    assert count(await worker.run(large, 6)) == {"ok": 6}

    assert server.targets == [f"/{index}" for index in range(6)]
    expected = block.encode()
    for index, request in enumerate(server.requests):
        assert request.body[:1] == b"%d" % index
        assert request.body[1:] == expected
    assert server.connections == 1


async def test_many_large_bodies_at_once(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Each goes over its own connection, and none is mixed with another."""
    server = await serve(always(OK))
    spec = build_spec(engine, server.url, body="{i}," * 300_000, concurrency=8)

    assert count(await worker.run(spec, 40)) == {"ok": 40}

    assert sorted(server.targets) == sorted(f"/{index}" for index in range(40))
    for request in server.requests:
        assert request.body == f"{request.target[1:]},".encode() * 300_000


def stop_reading(transport: asyncio.Transport) -> None:
    """Read nothing more; asyncio of Python 3.11.2 begins to read after the connection is announced."""
    asyncio.get_running_loop().call_soon(transport.pause_reading)


async def test_an_answer_before_the_request_is_out(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """It counts; the rest is not taken for the next request, nor is the next one lost with it."""

    def greet(transport: asyncio.Transport) -> None:
        stop_reading(transport)
        transport.write(OK)
        asyncio.get_running_loop().call_later(0.1, resume, transport)

    def resume(transport: asyncio.Transport) -> None:
        if not transport.is_closing():
            transport.resume_reading()

    async def stay_silent(_: Exchange) -> None:
        """The answer was there before."""

    server = await serve(stay_silent, greet=greet)

    account = await worker.run(build_spec(engine, server.url, body="x" * 50 * MIB, timeout_s=5.0), 4)

    assert count(account) == {"ok": 4}
    assert server.connections == 4


@pytest.mark.parametrize("headers", [(), ("Connection: close",)])
async def test_a_refusal_before_the_request_is_out(
    engine: Engine, worker: EngineWorker, serve: Serve, headers: tuple[str, ...]
) -> None:
    """A server that answers early and hangs up is heard or not: only it can end that race fairly."""
    refusal = build_response("413 Content Too Large", b"", *headers)

    def greet(transport: asyncio.Transport) -> None:
        transport.write(refusal)
        transport.close()

    server = await serve(always(OK), greet=greet)

    account = await worker.run(build_spec(engine, server.url, body="x" * 50 * MIB, timeout_s=5.0), 6)

    assert set(count(account)) <= {"unexpected_status", "disconnected"}
    assert sum(account.outcomes) == 6
    assert server.received == 0
    assert server.connections == 6


async def test_a_request_that_nobody_reads(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Its time runs while it is sent."""
    server = await serve(always(OK), greet=stop_reading)

    account = await worker.run(build_spec(engine, server.url, body="x" * 20 * MIB, timeout_s=0.4), 3)

    assert count(account) == {"timeout": 3}
    assert server.received == 0


async def test_a_stop_while_a_request_goes_out(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """The request is given back, and what has not been sent never is."""
    server = await serve(always(OK), greet=stop_reading)
    running = asyncio.ensure_future(
        worker.run(build_spec(engine, server.url, body="x" * 20 * MIB, concurrency=3), 10)
    )
    async with asyncio.timeout(10):
        while server.connections < 3 or worker.count_in_flight() < 3:  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)  # they begin to go out

    worker.stop(grace_s=0)
    account = await running

    assert (account.done, account.given_back) == (3, [0, 1, 2])
    assert server.received == 0


async def test_memory_is_given_back(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """A series of large requests needs room for those in flight, not for all."""
    server = await serve(always(OK))
    spec = build_spec(engine, server.url, body="x" * 10 * MIB)
    await worker.run(spec, 4)
    server.requests.clear()
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for turn in range(3):
        assert count(await worker.run(spec, 4, start=4 * turn)) == {"ok": 4}
        server.requests.clear()

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 60 * 1024
