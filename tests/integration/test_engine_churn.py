"""Connections that come and go by the thousand: no file is left open, and none is taken for another."""

import asyncio
import gc
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.hostile_server import (
    Exchange,
    HostileServer,
    Serve,
    always,
    build_response,
    set_reset_on_close,
    stall,
)
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount, count

from oku_core.accounting.outcome import build_no_counts
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.url import Url
from oku_workers.engines.http.connection_set import CONNECTING_AT_ONCE

OK = build_response(body=b"hi")
SYN_SENT = "02"
FEW = 30
"""Objects of connections that are just being closed."""


@pytest.fixture(params=[None, "127.0.0.77"], ids=["any address", "own address"])
def worker(request: pytest.FixtureRequest) -> Iterator[EngineWorker]:
    """With connections that uvloop makes, and with those that it is given."""
    worker = EngineWorker(request.param)
    yield worker
    worker.close()


def build_spec(engine: Engine, *urls: str, **changes: Any) -> Spec:
    """What to send."""
    fields: dict[str, Any] = {"concurrency": 50, "timeout_s": 5.0}
    return Spec(urls=tuple(map(Url, urls)), engine=engine, **(fields | changes))


def count_open_files() -> int:
    """Of this process, which is worker and server at once."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names, no paths


async def begin(worker: EngineWorker, spec: Spec, requests: int, start: int) -> asyncio.Task[LeaseAccount]:
    """A lease that the worker has just taken."""
    running = asyncio.ensure_future(worker.run(spec, requests, start=start))
    while not worker.runner.lease_ids:  # noqa: ASYNC110  # a lease runner tells nobody
        await asyncio.sleep(0)
    return running


async def settle(expected: int = 0, *, patience_s: float = 2.0) -> int:
    """The open files once those of both sides are closed: as few as expected, or not fewer for so long."""
    fewest, since = count_open_files(), time.monotonic()
    while fewest > expected and time.monotonic() - since < patience_s:
        await asyncio.sleep(0.01)
        if (now := count_open_files()) < fewest:
            fewest, since = now, time.monotonic()
    return count_open_files()


def greet_with_reset(transport: asyncio.Transport) -> None:
    """Reset at once."""
    set_reset_on_close(transport.get_extra_info("socket"))
    transport.abort()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("how", ["refused", "reset", "closed"])
async def test_connections_that_fail_leave_no_file_open(
    engine: Engine, worker: EngineWorker, serve: Serve, scheme: str, how: str
) -> None:
    """They may be refused, reset or closed, before, while and after they are made."""
    greet = {"reset": greet_with_reset, "closed": lambda transport: transport.close()}.get(how)
    server = await serve(always(OK), greet=greet)
    port = 1 if how == "refused" else server.port
    spec = build_spec(engine, f"{scheme}://127.0.0.1:{port}/")
    await worker.run(spec, 100)
    before = count_open_files()

    account = await worker.run(spec, 1000)

    assert sum(account.outcomes) == 1000
    assert "ok" not in count(account)
    # libuv opens a file of its own with the first connection that is made, be that now or before.
    assert await settle(before + 1) <= before + 1


@pytest.mark.parametrize("has_tls", [False, True])
async def test_cut_off_connections_leave_no_file_open(
    engine: Engine, worker: EngineWorker, serve: Serve, tmp_path: Any, *, has_tls: bool
) -> None:
    """It does not matter what they were doing when the lease was stopped."""
    # uvloop says so when a connection is given up in the moment in which its handshake ends; that is all.
    worker.overlook("Fatal error on SSL protocol")
    files = Certificates(tmp_path)
    server = await serve(stall, tls=files.server if has_tls else None)
    spec = build_spec(engine, f"{server.url}/{{i}}", cacert=files.cacert if has_tls else None)
    luck = random.Random(3)
    before = 0
    for turn in range(15):
        running = await begin(worker, spec, 1000, start=1000 * turn)
        await asyncio.sleep(luck.choice([0, 0, 0.001, 0.003, 0.01]))
        worker.stop(grace_s=0)
        account = await running
        assert account.outcomes == build_no_counts()
        if turn == 5:
            before = await settle(patience_s=0.5)

    assert await settle(before) <= before + 2


async def test_a_stop_before_a_connection_is_begun(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """It may come in the very turn of the event loop that has taken the indices."""
    server = await serve(always(OK))
    spec = build_spec(engine, f"{server.url}/{{i}}")
    await worker.run(spec, 1)
    for turn in range(1, 40):
        running = await begin(worker, spec, 100, start=1000 * turn)
        worker.stop(grace_s=0)
        await running

    assert count(await worker.run(spec, 500, start=10**6)) == {"ok": 500}
    assert len(set(server.targets)) == server.received


async def test_a_stop_while_nobody_accepts(engine: Engine, worker: EngineWorker) -> None:
    """Connections under way are given up at once."""
    with ExitStack() as stack:
        port = listen_to_nobody(stack)
        spec = build_spec(engine, f"http://127.0.0.1:{port}/", timeout_s=20.0)
        fillers = count_connecting(port)
        running = asyncio.ensure_future(worker.run(spec, 100))
        async with asyncio.timeout(10):
            while count_connecting(port) - fillers < 50:  # noqa: ASYNC110  # a kernel tells nobody
                await asyncio.sleep(0.01)
        before = count_open_files()

        worker.stop(grace_s=0)
        account = await asyncio.wait_for(running, 10)

        assert (account.done, account.given_back) == (50, list(range(50)))
        assert await settle(before - 50) <= before - 50


def listen_to_nobody(stack: ExitStack) -> int:
    """A port where connections are neither refused nor made."""
    full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    for _ in range(3):
        # Linux takes one connection more than the backlog and then drops what comes.
        filler = stack.enter_context(socket.socket())
        filler.settimeout(0)
        filler.connect_ex(full.getsockname())
    port: int = full.getsockname()[1]
    return port


def count_connecting(port: int) -> int:
    """The connections to a port that are under way."""
    target = f"{struct.unpack('=I', socket.inet_aton('127.0.0.1'))[0]:08X}:{port:04X}"
    with open("/proc/net/tcp") as table:  # noqa: PTH123  # it is in memory
        return sum(line.split()[2:4] == [target, SYN_SENT] for line in table)


async def test_connections_are_made_in_steps(worker: EngineWorker) -> None:
    """A server's queue holds only so many; requests that must wait for a connection are not taken."""
    with ExitStack() as stack:
        port = listen_to_nobody(stack)
        spec = build_spec(Engine.HTTPTOOLS, f"http://127.0.0.1:{port}/", concurrency=2000, timeout_s=0.5)
        fillers = count_connecting(port)
        running = asyncio.ensure_future(worker.run(spec, 3 * CONNECTING_AT_ONCE))
        most = 0
        for _ in range(20):
            await asyncio.sleep(0.02)
            most = max(most, count_connecting(port) - fillers)
        assert most == CONNECTING_AT_ONCE
        while not running.done():
            assert worker.count_in_flight() <= CONNECTING_AT_ONCE
            await asyncio.sleep(0.02)

        assert count(await running) == {"timeout": 3 * CONNECTING_AT_ONCE}


async def test_no_request_goes_out_on_a_connection_of_another(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Files are closed and their numbers used again all the time; each server gets what is meant for it."""
    luck = random.Random(4)

    async def script(exchange: Exchange) -> None:
        draw = luck.random()
        if draw < 0.15:
            exchange.reset()
        elif draw < 0.3:
            exchange.hang_up()
        elif draw < 0.4:
            await exchange.send(OK[:10])
            exchange.reset()
        elif draw < 0.5:
            await exchange.send(build_response("200 OK", b"hi", "Connection: close"))
        elif draw < 0.6:
            await asyncio.sleep(0.3)
        else:
            await exchange.send(OK, *[OK] * (draw < 0.65))

    servers: list[HostileServer] = [
        await serve(script, greet=greet) for greet in (None, None, reset_some(luck), reset_some(luck))
    ]
    spec = build_spec(
        engine, *(f"{server.url}/{turn}/{{i}}" for turn, server in enumerate(servers)), timeout_s=0.15
    )
    for turn in range(4):
        running = asyncio.ensure_future(worker.run(spec, 2000, start=2000 * turn))
        if turn % 2:
            await asyncio.sleep(luck.uniform(0, 0.5))
            worker.stop(grace_s=luck.choice([0, 0.05]))
        assert sum((await running).outcomes) <= 2000

    for turn, server in enumerate(servers):
        assert server.received > 200
        assert {target.split("/")[1] for target in server.targets} == {str(turn)}
        assert {request.header("host")[0] for request in server.requests} == {server.url[7:]}
        assert {int(target.split("/")[2]) % 4 for target in server.targets} == {turn}
        assert len(set(server.targets)) == server.received


def reset_some(luck: random.Random) -> Any:
    """Greets every third connection with its end."""

    def greet(transport: asyncio.Transport) -> None:
        if luck.random() < 0.3:
            greet_with_reset(transport)

    return greet


async def test_no_connection_and_no_failed_request_waits_for_the_garbage_collector(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """A body of a request may be large: with its connection it is freed as soon as it has ended."""
    server = await serve(always(build_response("200 OK", b"hi", "Connection: close")))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        for urls in ((server.url,), (refusing,)):
            spec = build_spec(engine, *urls, body="{i}", method="POST", concurrency=5)
            await worker.run(spec, 20)
            found = await collect_of_oku(worker, spec)
            assert len(found) < FEW, found


async def collect_of_oku(worker: EngineWorker, spec: Spec) -> list[str]:
    """Of what is ours and aiohttp's, what the collector finds after a lease of 200 requests."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await worker.run(spec, 200, start=20)
        await asyncio.sleep(0.1)
        gc.collect()
        names = [f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage]
        return [name for name in names if name.startswith(("oku_", "aiohttp."))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
