"""Fixtures of tests that drive real engines against servers of their own."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.kit.http2.server import Http2Server, Script, ServeHttp2
from tests.kit.servers.any_server import ServeAny
from tests.kit.servers.hostile_server import HostileServer, Serve
from tests.kit.servers.hostile_server import Script as Http1Script
from tests.kit.workers.engine_worker import EngineWorker

from oku_core.spec.spec import HTTP_ENGINES, Engine


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

    async def start(script: Http1Script, **settings: object) -> HostileServer:
        server = HostileServer(script, **settings)  # type: ignore[arg-type]
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.end()


@pytest.fixture
async def serve_http2(worker: EngineWorker) -> AsyncIterator[ServeHttp2]:
    """Starts servers of HTTP/2 that outlive the worker's requests; what they expect of clients must hold."""
    servers: list[Http2Server] = []

    async def start(script: Script | None = None, **settings: object) -> Http2Server:
        server = Http2Server(script, **settings)  # type: ignore[arg-type]
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.end()
    assert [fault for server in servers for fault in server.faults] == []


@pytest.fixture(params=HTTP_ENGINES, ids=str)
def every_engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine that sends the requests of a spec, whatever version of HTTP it speaks."""
    assert isinstance(request.param, Engine)
    return request.param


@pytest.fixture
def serve_any(engine: Engine, serve: Serve, serve_http2: ServeHttp2) -> ServeAny:
    """Starts servers that speak what the engine does."""
    return serve_http2 if engine is Engine.NGHTTP2 else serve
