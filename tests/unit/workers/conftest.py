"""Executions and lease runners for tests of the workers."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from tests.kit.workers.engines_in_memory import Bench, build_simulated_meter

from oku_core.messaging.lease import Lease
from oku_core.spec.spec import Spec
from oku_workers.executions.execution import Execution


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that makes futures and never runs."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def build_execution(loop: asyncio.AbstractEventLoop) -> Callable[..., Execution]:
    """Makes executions of a lease of these ranges, all of which may be taken unless there is a limit."""

    def build(
        *ranges: tuple[int, int],
        limit: int = 10**9,
        now: Callable[[], float] = time.time,
        run: str = "r1",
    ) -> Execution:
        lease = Lease(id=str(ranges), run=run, ranges=list(ranges), limit=limit)
        return Execution(lease, Spec(), loop.create_future(), now)

    return build


@pytest.fixture
async def build_bench() -> AsyncIterator[Callable[[], Bench]]:
    """Makes lease runners that have begun, with everything around them in memory."""
    benches: list[Bench] = []

    def build() -> Bench:
        benches.append(Bench(build_simulated_meter()))
        return benches[-1]

    yield build
    for bench in benches:
        await bench.close()


@pytest.fixture
async def bench(build_bench: Callable[[], Bench]) -> Bench:
    """One of these."""
    return build_bench()
