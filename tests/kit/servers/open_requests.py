"""A target that counts its open requests: those that have come and are not answered yet."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_END = b"\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class OpenRequests:
    """Counts in a thread of its own.

    Args:
        delay_s: the time to each answer.

    Attributes:
        url: where it listens.
    """

    def __init__(self, delay_s: float) -> None:
        self.url = ""
        self._delay_s = delay_s
        self._open: Counter[object] = Counter()
        self._most = 0

    def take_most(self) -> int:
        """The most open requests at a time since the last call."""
        most, self._most = self._most, 0
        return most

    def begin(self, connection: asyncio.Transport) -> None:
        """A request has come."""
        loop = asyncio.get_running_loop()
        self._open[connection] += 1
        loop.call_later(self._delay_s, self._answer, connection)
        # A connection that was closed before may be reported in the next turn of the event loop.
        loop.call_soon(loop.call_soon, self._count)

    def forget(self, connection: object) -> None:
        """A connection was closed, with what was open on it."""
        self._open.pop(connection, None)

    def _answer(self, connection: asyncio.Transport) -> None:
        if self._open.get(connection):
            self._open[connection] -= 1
            connection.write(_ANSWER)

    def _count(self) -> None:
        self._most = max(self._most, self._open.total())

    async def serve(self, is_ready: threading.Event, is_over: threading.Event) -> None:
        """Serve until it is over."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.url = "http://{}:{}".format(*server.sockets[0].getsockname())
        is_ready.set()
        await loop.run_in_executor(None, is_over.wait)
        server.close()


class _Connection(asyncio.Protocol):
    def __init__(self, owner: OpenRequests) -> None:
        self._owner = owner
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *complete, self._received = (self._received + data).split(_END)
        for _ in complete:
            self._owner.begin(self._transport)

    def eof_received(self) -> None:
        self._owner.forget(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._owner.forget(self._transport)


@contextmanager
def run_open_requests(delay_s: float) -> Iterator[OpenRequests]:
    """Runs such a target until the end of the block."""
    target, is_ready, is_over = OpenRequests(delay_s), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(target.serve(is_ready, is_over)), daemon=True)
    thread.start()
    is_ready.wait()
    try:
        yield target
    finally:
        is_over.set()
        thread.join()
