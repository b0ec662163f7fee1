"""Whatever bytes a target answers with, both engines make the same of them, and of each request something."""

import contextlib

import pytest
from tests.kit.faults.abuse import read_rss_mb
from tests.kit.faults.mutation import mutate_one_of
from tests.kit.servers.hostile_server import Exchange, HostileServer, Serve
from tests.kit.servers.responses import INVALID, VALID, Invalid, Valid
from tests.kit.workers.engine_fixtures import serve, worker
from tests.kit.workers.engine_worker import EngineWorker, LeaseAccount

from oku_core.spec.spec import HTTP1_ENGINES, Engine, Spec
from oku_core.spec.values.check import ExpectedStatus
from oku_core.spec.values.request_content import Header
from oku_core.spec.values.url import Url

__all__ = ["serve", "worker"]

EXAMPLES = 800
BATCH = 40
MOST_MB = 80
ROWS: list[Valid | Invalid] = [*VALID.values(), *INVALID.values()]
SAMPLES = tuple(row.content for row in ROWS if row.method == "GET")


@pytest.fixture
async def server(seed: int, serve: Serve) -> HostileServer:
    """Answers request i with the i-th changed sample, and hangs up."""

    async def script(exchange: Exchange) -> None:
        number = exchange.request.target[1:]
        with contextlib.suppress(ConnectionError):
            await exchange.send(mutate_one_of(SAMPLES, f"{seed} {number}"))
        exchange.hang_up()

    return await serve(script)


async def ask(
    worker: EngineWorker, server: HostileServer, engine: Engine, start: int, count: int
) -> LeaseAccount:
    """Send some requests."""
    spec = Spec(
        urls=(Url(f"{server.url}/{{i}}"),),
        # A request on a connection that the server is about to close may or may not come through.
        headers=(Header("Connection: close"),),
        engine=engine,
        concurrency=10,
        timeout_s=10.0,
        expect_status=tuple(ExpectedStatus(f"{digit}xx") for digit in range(1, 6)),
    )
    return await worker.run(spec, count, start=start)


def describe(account: LeaseAccount) -> object:
    """What came of them."""
    return account.outcomes, account.part.statuses, account.part.bytes_received


@pytest.mark.timeout(3600)
async def test_engines_agree_on_any_response(
    worker: EngineWorker, server: HostileServer, scale: int, seed: int
) -> None:
    """Outcomes, statuses and bytes are alike; the worker neither hangs nor grows."""
    worker.overlook("")
    memory_mb = read_rss_mb("self")
    for start in range(0, EXAMPLES * scale, BATCH):
        accounts = [await ask(worker, server, engine, start, BATCH) for engine in HTTP1_ENGINES]
        if describe(accounts[0]) != describe(accounts[1]):
            await name_difference(worker, server, seed, start)
    assert read_rss_mb("self") - memory_mb < MOST_MB


async def name_difference(worker: EngineWorker, server: HostileServer, seed: int, start: int) -> None:
    """Fail with the bytes that engines disagree on."""
    for number in range(start, start + BATCH):
        found = {
            str(engine): describe(await ask(worker, server, engine, number, 1)) for engine in HTTP1_ENGINES
        }
        assert len({str(one) for one in found.values()}) == 1, (
            mutate_one_of(SAMPLES, f"{seed} {number}"),
            found,
        )
    pytest.fail(
        f"the engines disagree on {start} to {start + BATCH} of seed {seed}, and on none of them alone"
    )
