"""Fixtures of tests that drive real engines against servers of their own."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.kit.servers.hostile_server import HostileServer, Script, Serve
from tests.kit.workers.engine_worker import EngineWorker


@pytest.fixture
def worker() -> Iterator[EngineWorker]:
    """A lease runner on an event loop of its own, which must leave nothing behind."""
    worker = EngineWorker()
    yield worker
    worker.close()


@pytest.fixture
async def serve(worker: EngineWorker) -> AsyncIterator[Serve]:
    """Starts hostile servers that outlive the worker's requests."""
    servers: list[HostileServer] = []

    async def start(script: Script, **settings: object) -> HostileServer:
        server = HostileServer(script, **settings)  # type: ignore[arg-type]
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.end()
