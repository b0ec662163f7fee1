"""Time is simulated here: a test that waits for a minute takes some milliseconds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
from tests.kit.workers.engines_in_memory import Bench, build_simulated_meter
from tests.kit.workers.simulated_loop import SimulatedLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops of the tests in this folder."""
    return {"simulated": SimulatedLoop}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A lease runner that has begun, with everything around it in memory."""
    bench = Bench(build_simulated_meter())
    yield bench
    await bench.close()
