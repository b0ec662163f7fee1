"""A coordinator in the event loop of a test, so that the test can reach into what it is made of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi

from oku_coordinator.foundation import Platform
from oku_coordinator.process import Coordinator
from oku_coordinator.settings import CoordinatorSettings
from oku_core.process.supervision import Supervisor


@asynccontextmanager
async def running_coordinator(
    broker_url: str,
    data_dir: Path,
    build_supervisor: Callable[..., Supervisor] = Supervisor,
    **settings: Any,
) -> AsyncIterator[tuple[Coordinator, CoordinatorApi]]:
    """Runs a coordinator until the end of the block; its API is to be called from another thread."""
    ready_file = data_dir / "ready"
    coordinator = Coordinator(
        CoordinatorSettings(
            broker_url=broker_url,
            message_key=MESSAGE_KEY,
            data_dir=data_dir,
            token=TOKEN,
            port=0,
            ready_file=ready_file,
            **settings,
        ),
        Platform(build_supervisor=build_supervisor),
    )
    running = asyncio.create_task(coordinator.run())
    try:
        async with asyncio.timeout(20):
            while not ready_file.exists() and not running.done():  # noqa: ASYNC110  # a file does not call
                await asyncio.sleep(0.01)
        yield coordinator, CoordinatorApi(f"http://{ready_file.read_text().strip()}")
    finally:
        coordinator.end()
        await running
