from collections.abc import AsyncIterator, Iterator

import pytest
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.servers.hostile_server import HostileServer, Script, Serve
from tests.kit.workers.engine_worker import EngineWorker

from oku_core.spec.spec import Engine


@pytest.fixture(scope="session", autouse=True)
def message_key() -> Iterator[None]:
    """Processes sign with the key of tests."""
    with exported_message_key():
        yield


@pytest.fixture(params=list(Engine), ids=str)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine: all count alike."""
    assert isinstance(request.param, Engine)
    return request.param


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
