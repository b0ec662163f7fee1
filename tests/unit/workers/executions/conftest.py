"""Time is simulated here: a test that waits takes none."""

import asyncio
from collections.abc import Callable, Mapping

from tests.kit.workers.simulated_loop import SimulatedLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops of the tests in this folder."""
    return {"simulated": SimulatedLoop}
