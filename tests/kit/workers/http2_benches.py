"""The engine for HTTP/2 in memory, with one stream on each connection and with several."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.kit.http2.frames import ErrorCode
from tests.kit.http2.session import Session, StreamRequest
from tests.kit.workers.engine_benches import EngineBench

from oku_core.spec.spec import Engine
from oku_workers.engines.nghttp2 import connection as nghttp2_connection
from oku_workers.engines.nghttp2 import engine as nghttp2_engine
from oku_workers.engines.nghttp2.connection import Connection
from oku_workers.engines.nghttp2.route import Origin


class Http2Transport:
    """One connection as its server sees it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.session = Session(self._send)
        self.requests: list[StreamRequest] = []
        self.is_aborted = False
        self._unread: bytes | None = b""

    def begin(self, settings: Mapping[int, int]) -> None:
        """Say what the server has to say first, and read from now on."""
        self.session.change_settings(settings)
        unread, self._unread = self._unread or b"", None
        self.write(unread)

    def get_extra_info(self, name: str) -> object:
        """Look like a TLS connection, whose file descriptor nobody writes to."""
        return self if name == "ssl_object" else None

    def selected_alpn_protocol(self) -> str:
        """What was agreed on."""
        return "h2"

    def write(self, data: bytes) -> None:
        """Take what the client sends."""
        if self._unread is not None:
            self._unread += data
            return
        self.requests.extend(self.session.feed(data))

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

    def answer(self, stream: int) -> None:
        """Answer a request, also one that the client has given up."""
        if not self.session.streams[stream].is_answered:
            self.session.send_headers(stream, [(":status", "200"), ("content-length", "2")])
            self.session.send_data(stream, b"hi")

    def _send(self, data: bytes) -> None:
        """Send at the next turn of the event loop, for the client may be about to write."""
        asyncio.get_running_loop().call_soon(self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        """As in uvloop, the event loop is told of an error."""
        if self.is_aborted:
            return
        try:
            self.connection.data_received(data)
        except Exception as error:  # noqa: BLE001  # whatever the engine does wrong
            context = {"message": "Fatal error: protocol.data_received() call failed.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


class Nghttp2Bench(EngineBench):
    """The nghttp2 engine with a connection for each request; `open` has those that were made.

    Attributes:
        settings: what servers say first; None to say nothing, and to read nothing.
    """

    kind = Engine.NGHTTP2
    clocked = (nghttp2_engine, nghttp2_connection)
    streams = 1

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
        super().__init__(monkeypatch, **({"streams": self.streams} | changes))

    def put_targets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand for the network."""
        self.open: list[Http2Transport] = []
        self.settings: dict[int, int] | None = {}
        self.may_connect = asyncio.Event()
        self.may_connect.set()
        monkeypatch.setattr(Origin, "connect", lambda _, connection: self.connect(connection))

    async def connect(self, connection: Connection) -> None:
        """Stands for `Origin.connect`."""
        await self.may_connect.wait()
        if self.refuses:
            raise ConnectionRefusedError(111, "refused")
        transport: Any = Http2Transport(connection)
        self.open.append(transport)
        if self.settings is not None:
            transport.begin(self.settings)
        connection.connection_made(transport)

    @property
    def sent(self) -> list[int]:
        """The indices that were sent, rising."""
        return sorted(int(request.target[1:]) for transport in self.open for request in transport.requests)

    def answer(self, index: int) -> None:
        """Answer a request, whether or not anybody waits for it."""
        transport, stream = self.find(index)
        transport.answer(stream)

    def break_off(self, index: int, error: Exception) -> None:
        """Let the connection of a request end with an error."""
        self.find(index)[0].connection.connection_lost(error)

    def find(self, index: int) -> tuple[Http2Transport, int]:
        """Where a request was sent, and on which stream."""
        [found] = [
            (transport, request.stream)
            for transport in self.open
            for request in transport.requests
            if request.target == f"/{index}"
        ]
        return found


class MultiplexedBench(Nghttp2Bench):
    """The nghttp2 engine with all requests on one connection."""

    streams = 10
    told_of_end = "first disconnected: stream reset: INTERNAL_ERROR"

    def break_off(self, index: int, error: Exception) -> None:  # noqa: ARG002  # the server cannot say more
        """Let the stream of a request end with an error."""
        transport, stream = self.find(index)
        transport.session.reset(stream, ErrorCode.INTERNAL_ERROR)
