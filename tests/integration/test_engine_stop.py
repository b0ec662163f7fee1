"""How leases end early, follow on each other and make way for another spec, on the wire."""

import asyncio
import itertools
import os
import random
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.kit.servers.any_server import AnyExchange, AnyServer, answer
from tests.kit.servers.any_server import ServeAny as Serve
from tests.kit.workers.engine_fixtures import every_engine as engine
from tests.kit.workers.engine_fixtures import serve_any as serve
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount, count

from oku_core.accounting.measured_time import Time
from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.url import Url

__all__ = ["engine", "serve"]

CONCURRENCY = 20
STREAMS = 10


class Gate:
    """Holds every request until it is let through."""

    def __init__(self) -> None:
        self._held: list[tuple[AnyExchange, asyncio.Event]] = []

    async def script(self, exchange: AnyExchange) -> None:
        """Hold a request."""
        passed = asyncio.Event()
        self._held.append((exchange, passed))
        await passed.wait()
        await answer(exchange)

    def open_one(self) -> str:
        """Let the one through that has waited longest; its target."""
        exchange, passed = self._held.pop(0)
        passed.set()
        return exchange.request.target

    def open_all(self) -> None:
        """Let all through that wait."""
        while self._held:
            self.open_one()


def build_spec(engine: Engine, server: AnyServer, **changes: Any) -> Spec:
    """What to send; nothing ends by its timeout."""
    fields: dict[str, Any] = {"concurrency": CONCURRENCY, "streams": STREAMS, "timeout_s": 20.0}
    return Spec(urls=(Url(f"{server.url}/{{i}}"),), engine=engine, **(fields | changes))


def count_connections(engine: Engine, requests: int) -> int:
    """How many connections it takes to have so many requests in flight."""
    return -(-requests // STREAMS) if engine is Engine.NGHTTP2 else requests


async def stall(_: AnyExchange) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for something on the server's side."""
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  # many things are waited for, and none of them has an event
            await asyncio.sleep(0.002)


def list_covered(account: LeaseAccount) -> list[int]:
    """The indices that a lease accounts for."""
    return sorted(set(range(account.start, account.done)) - set(account.given_back))


def read_indices(server: AnyServer) -> list[int]:
    """The indices that the server was asked for, rising."""
    return sorted(int(target[1:]) for target in server.targets)


async def test_a_stop_with_grace(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """No index is taken after it; what is in flight finishes and is reported, the rest is given back."""
    gate = Gate()
    server = await serve(gate.script)
    running = asyncio.ensure_future(worker.run(build_spec(engine, server), 1000))
    await wait_until(lambda: server.received == CONCURRENCY)

    worker.stop(grace_s=20)
    gate.open_all()
    account = await running

    assert count(account) == {"ok": CONCURRENCY}
    assert (account.done, account.given_back) == (CONCURRENCY, [])
    assert server.received == CONCURRENCY


async def test_the_grace_of_a_spec_leaves_each_request_its_timeout(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """A run that is stopped gives nothing back, not even requests that were sent at the last moment."""
    server = await serve(stall)
    spec = build_spec(engine, server, timeout_s=2.0)
    running = asyncio.ensure_future(worker.run(spec, 1000))
    await wait_until(lambda: server.received == CONCURRENCY)

    worker.stop(grace_s=spec.drain_s)
    account = await running

    assert count(account) == {"timeout": CONCURRENCY}
    assert account.given_back == []


async def test_a_grace_that_is_too_short(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Answers within it count, the rest is given back; a second order changes nothing."""

    async def script(exchange: AnyExchange) -> None:
        if int(exchange.request.target[1:]) % 2:
            await asyncio.sleep(0.1)
            await answer(exchange)
        else:
            await stall(exchange)

    server = await serve(script)
    running = asyncio.ensure_future(worker.run(build_spec(engine, server), 1000))
    await wait_until(lambda: server.received >= CONCURRENCY)

    worker.stop(grace_s=1.5)
    worker.stop(grace_s=1.5)
    account = await running

    assert all(index % 2 == 0 for index in account.given_back)
    assert all(index % 2 == 1 for index in list_covered(account))
    assert count(account) == {"ok": len(list_covered(account))}
    assert read_indices(server) == list(range(account.done))


async def test_stops_at_any_moment(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """Whenever the order comes, each index that was sent is accounted for or given back, and none is both."""
    luck = random.Random(2)

    async def script(exchange: AnyExchange) -> None:
        await asyncio.sleep(luck.choice([0, 0, 0.001, 0.005]))
        await exchange.respond(body=b"hi", pause_s=0.001)

    server = await serve(script)
    spec = build_spec(engine, server)
    at = 0
    for _ in range(40):
        server.requests.clear()
        running = asyncio.ensure_future(worker.run(spec, 400, start=at))
        await asyncio.sleep(luck.uniform(0, 0.03))
        worker.stop(grace_s=luck.choice([0, 0, 0.002, 1]))
        account = await running
        await asyncio.sleep(0.01)  # what was cut off may still be on its way
        sent = read_indices(server)

        assert len(account.given_back) <= CONCURRENCY
        assert len(set(sent)) == len(sent)
        assert set(list_covered(account)) <= set(sent) <= set(range(at, account.done))
        assert account.outcomes[0] == len(list_covered(account))
        at = account.done


async def test_the_window_stays_full_from_lease_to_lease(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """While one lease drains, the next one fills the window: whoever is answered makes room for one more."""
    gate = Gate()
    server = await serve(gate.script)
    spec = build_spec(engine, server)
    first = asyncio.ensure_future(worker.run_lease(worker.build_lease(spec, 50)))
    await wait_until(lambda: server.received == CONCURRENCY)
    second = asyncio.ensure_future(worker.run_lease(worker.build_lease(spec, 50, start=50)))
    await wait_until(lambda: len(worker.runner.lease_ids) == 2)

    for more in range(1, 100 - CONCURRENCY + 1):
        if CONCURRENCY + more == 50:
            before_its_last_index = time.time()
        gate.open_one()
        await wait_until(lambda expected=CONCURRENCY + more: server.received == expected)  # type: ignore[misc]
        assert not second.done()
    await asyncio.wait_for(first, 5)
    gate.open_all()
    accounts = [await first, await second]

    assert [count(account) for account in accounts] == [{"ok": 50}, {"ok": 50}]
    assert server.most_at_once == CONCURRENCY
    assert server.connections == count_connections(engine, CONCURRENCY)
    # The second one began when the first had no index left, not when it came.
    assert accounts[1].checkpoint.figures.started_at >= before_its_last_index


async def test_another_spec_waits_for_the_end_of_the_one_before(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """Nothing of a new spec is sent while requests of the old one are in flight."""
    gate = Gate()
    old, new = await serve(gate.script), await serve(answer)
    first = asyncio.ensure_future(worker.run(build_spec(engine, old), CONCURRENCY))
    await wait_until(lambda: old.received == CONCURRENCY)
    second = asyncio.ensure_future(worker.run(build_spec(engine, new, concurrency=3), 30, start=7))
    await wait_until(lambda: len(worker.runner.lease_ids) == 2)
    await asyncio.sleep(0.1)
    assert new.received == 0

    gate.open_all()
    accounts = [await first, await second]

    assert [count(account) for account in accounts] == [{"ok": CONCURRENCY}, {"ok": 30}]
    assert new.connections == count_connections(engine, 3)
    await wait_until(lambda: old.is_quiet)


async def test_a_lease_that_waits_for_its_engine_can_be_stopped(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """It need not wait for the lease of another spec to end."""
    gate = Gate()
    server = await serve(gate.script)
    first = asyncio.ensure_future(worker.run(build_spec(engine, server), CONCURRENCY))
    await wait_until(lambda: server.received == CONCURRENCY)
    other = worker.build_lease(build_spec(engine, server, method="POST"), 10, start=100, run="r2")
    second = asyncio.ensure_future(worker.run_lease(other))
    await wait_until(lambda: len(worker.runner.lease_ids) == 2)

    worker.stop(grace_s=0, run="r2")
    account = await second

    assert (account.done, account.given_back) == (100, [])
    gate.open_all()
    assert count(await first) == {"ok": CONCURRENCY}


async def test_the_seconds_sum_to_the_report(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """What the worker said while it ran, second by second, is together exactly what it accounts."""

    async def script(exchange: AnyExchange) -> None:
        index = int(exchange.request.target[1:])
        await asyncio.sleep(index % 7 / 1000)
        await exchange.respond(500 if index % 5 == 0 else 200, b"x" * (index % 11))

    server = await serve(script)
    running = asyncio.ensure_future(worker.run(build_spec(engine, server), 2000))
    seconds = []
    while not running.done():
        seconds.append(worker.build_progress())
        await asyncio.sleep(0.02)
    account = await running
    seconds.append(worker.build_progress())

    assert len(seconds) > 5
    assert all(second.find_fault() is None for second in seconds)
    done = [second.runs["r1"] for second in seconds if second.runs]
    assert [sum(counts) for counts in zip(*(each.outcomes for each in done), strict=True)] == account.outcomes
    assert sum(each.bytes_received for each in done) == account.part.bytes_received
    assert (
        sum(each.histogram(Time.LATENCY).sum_us for each in done)
        == account.part.histogram(Time.LATENCY).sum_us
    )
    assert max(each.in_flight for each in done) <= CONCURRENCY


async def test_a_worker_that_closes_gives_everything_back(
    engine: Engine, worker: EngineWorker, serve: Serve
) -> None:
    """What is in flight when a worker closes is given back, and no connection is left open."""
    server = await serve(stall)
    running = asyncio.ensure_future(worker.run(build_spec(engine, server), 1000))
    await wait_until(lambda: server.received == CONCURRENCY)

    await asyncio.to_thread(worker.close_runner)
    running.cancel()

    [progress] = worker.build_progress().leases.values()
    assert (progress.taken, progress.end, sum(progress.outcomes)) == (CONCURRENCY, CONCURRENCY, 0)
    await wait_until(lambda: server.is_quiet)


@contextmanager
def allow_few_open_files(more: int) -> Iterator[None]:
    """Only so many more than there are now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}  # noqa: PTH208  # names, no paths
    free = itertools.islice((number for number in itertools.count() if number not in taken), more)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("engine", HTTP1_ENGINES)
async def test_too_few_open_files(engine: Engine, worker: EngineWorker, serve: Serve) -> None:
    """A request for which the worker has no file is a `connect_error`; with files again all is well."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        spec = Spec(
            urls=(Url(f"http://127.0.0.1:{silent.getsockname()[1]}/"),),
            engine=engine,
            concurrency=60,
            timeout_s=0.5,
        )
        # The window is chosen by then; what the system allows may shrink behind its back.
        assert count(await worker.run(spec, 60)) == {"timeout": 60}
        with allow_few_open_files(30):
            account = await worker.run(spec, 500)

    assert set(count(account)) == {"connect_error", "timeout"}
    assert sum(account.outcomes) == 500
    server = await serve(answer)
    assert count(await worker.run(build_spec(engine, server), 100)) == {"ok": 100}
