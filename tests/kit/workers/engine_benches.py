"""Engines in memory: the feed, the clock and the targets of an engine are the test's, and no time goes by."""

import asyncio
from abc import ABC, abstractmethod
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from aiohttp import ClientSession
from tests.kit.workers.extension import set_exchange_clock

from oku_core.accounting.outcome import CONNECT_ERROR
from oku_core.http_client.http1_connection import TransportError
from oku_core.http_client.idle_pool import PooledConnector
from oku_core.messaging.lease import Lease
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Engine, Spec
from oku_core.spec.values.template import Rows
from oku_core.spec.values.url import Url
from oku_workers.engines.aiohttp import engine as aiohttp_engine
from oku_workers.engines.aiohttp import protocol as aiohttp_protocol
from oku_workers.engines.contract.engine_protocol import EngineContext, EngineProtocol
from oku_workers.engines.engine_registry import build_engine
from oku_workers.engines.httptools import connection as httptools_connection
from oku_workers.engines.httptools import engine as httptools_engine
from oku_workers.engines.httptools.connection import Connection
from oku_workers.executions.execution import Execution
from oku_workers.feed.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
LAST_ANSWER = ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
_BODY = SimpleNamespace(total_bytes=2, head=b"", kept=b"", first_ns=0)
RESPONSE = SimpleNamespace(connection=None, status=200, content=_BODY)


async def settle() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(10):
        await asyncio.sleep(0)


class EngineBench(ABC):
    """An engine that has begun, and the targets that it asks for `/0`, `/1` and so on.

    Args:
        monkeypatch: puts the clock and the targets of the test in the place of real ones.
        rows: the rows of the run, if its spec has data.
        changes: what the spec says beside three requests at a time and a timeout of an hour.

    Attributes:
        refuses: whether no connection can be made.
        told_of_end: what is said of a request that an error has broken off.
    """

    kind: ClassVar[Engine]
    told_of_end: ClassVar[str] = "first disconnected: the server hung up; OSError: over and out"
    clocked: ClassVar[tuple[ModuleType, ...]]
    engine: EngineProtocol

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: Rows | None = None, **changes: Any) -> None:
        fields: dict[str, Any] = {"urls": (Url("http://host/{i}"),), "concurrency": 3, "timeout_s": 3600.0}
        self.spec = Spec(engine=self.kind, **(fields | changes))
        self.feed = Feed()
        self.now_ns = 10**9
        self.refuses = False
        for module in self.clocked:
            monkeypatch.setattr(module, "monotonic_ns", lambda: self.now_ns)
        set_exchange_clock(monkeypatch, lambda: self.now_ns)
        self.put_targets(monkeypatch)
        self.supervisor = Supervisor()
        self.engine = build_engine(self.spec, self.feed, self.supervisor, EngineContext(rows=rows))
        self.engine.start()

    def add(self, *ranges: tuple[int, int], limit: int = 10**9) -> Execution:
        """Give the engine a lease of these ranges, all of which may be taken unless there is a limit."""
        lease = Lease(id=str(ranges), run="r1", ranges=list(ranges), limit=limit)
        execution = Execution(lease, self.spec, asyncio.get_running_loop().create_future())
        self.feed.add(execution)
        return execution

    def advance(self, seconds: float) -> None:
        """Let time go by, in which nothing else happens."""
        self.now_ns += int(seconds * 1e9)

    @property
    @abstractmethod
    def sent(self) -> list[int]:
        """The indices that were sent, rising."""

    @abstractmethod
    def put_targets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand for all targets."""

    @abstractmethod
    def answer(self, index: int) -> None:
        """Answer a request, whether or not anybody waits for it."""

    @abstractmethod
    def break_off(self, index: int, error: Exception) -> None:
        """Let the connection of a request end with an error."""


class AiohttpBench(EngineBench):
    """The aiohttp engine; requests do what `send` does with their index, or wait for their answer."""

    kind = Engine.AIOHTTP
    clocked = (aiohttp_engine, aiohttp_protocol)

    def put_targets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand for aiohttp's session."""
        self.started: list[int] = []
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.send: Callable[[int], Awaitable[Any]] | None = None
        monkeypatch.setattr(ClientSession, "request", lambda _, **arguments: self.request(**arguments))

    async def request(self, url: Any, **_: object) -> Any:
        """Stands for `ClientSession.request`."""
        index = int(url.path[1:])
        self.started.append(index)
        if self.refuses:
            raise TransportError(CONNECT_ERROR, ConnectionRefusedError(111, "refused"))
        if self.send is not None:
            return await self.send(index)
        self.answers[index] = asyncio.get_running_loop().create_future()
        return await self.answers[index]

    @property
    def sent(self) -> list[int]:
        """The indices that were sent, rising."""
        return sorted(self.started)

    def answer(self, index: int) -> None:
        """Answer a request, whether or not anybody waits for it."""
        if not self.answers[index].done():
            self.answers[index].set_result(RESPONSE)

    def break_off(self, index: int, error: Exception) -> None:
        """Let the connection of a request end with an error."""
        self.answers[index].set_exception(error)


class Transport:
    """One connection as its server sees it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.received: list[bytes] = []
        self.is_aborted = False

    def get_extra_info(self, name: str) -> object:
        """Look like a TLS connection, whose file descriptor nobody writes to."""
        return self if name == "ssl_object" else None

    def write(self, data: bytes) -> None:
        """Take a request."""
        self.received.append(data)

    def get_write_buffer_size(self) -> int:
        """All of it is out."""
        return 0

    def abort(self) -> None:
        """End soon."""
        if not self.is_aborted:
            self.is_aborted = True
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_aborted

    def answer(self, response: bytes = ANSWER) -> None:
        """Let a response arrive; as in uvloop, the event loop is told of an error."""
        try:
            self.connection.data_received(response)
        except Exception as error:  # noqa: BLE001  # whatever the engine does wrong
            context = {"message": "Fatal error: protocol.data_received() call failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    @property
    def indices(self) -> list[int]:
        """What was asked for on it."""
        return [int(request.split(b" ")[1][1:]) for request in self.received]


class HttptoolsBench(EngineBench):
    """The httptools engine; `open` has the connections that were made, in their order."""

    kind = Engine.HTTPTOOLS
    clocked = (httptools_engine, httptools_connection)

    def put_targets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand for the network."""
        self.open: list[Transport] = []
        self.connecting = 0
        self.may_connect = asyncio.Event()
        self.may_connect.set()
        monkeypatch.setattr(PooledConnector, "connect", lambda _, connection: self.connect(connection))

    async def connect(self, connection: Connection) -> None:
        """Stands for `PooledConnector.connect`."""
        self.connecting += 1
        try:
            await self.may_connect.wait()
        finally:
            self.connecting -= 1
        if self.refuses:
            raise ConnectionRefusedError(111, "refused")
        transport: Any = Transport(connection)
        self.open.append(transport)
        connection.connection_made(transport)

    @property
    def sent(self) -> list[int]:
        """The indices that were sent, rising."""
        return sorted(index for transport in self.open for index in transport.indices)

    def answer(self, index: int) -> None:
        """Answer a request, whether or not anybody waits for it."""
        self._find(index).answer()

    def break_off(self, index: int, error: Exception) -> None:
        """Let the connection of a request end with an error."""
        self._find(index).connection.connection_lost(error)

    def _find(self, index: int) -> Transport:
        [transport] = [transport for transport in self.open if index in transport.indices]
        return transport
