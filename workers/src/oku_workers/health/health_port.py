"""Answers probes by HTTP, from the event loop whose life they ask for: a loop that is stuck is silent.

`/readyz` is answered with 503 until the worker is ready. Every other path asks whether it lives.

It is a port and not a file, because user code runs as the same user and could touch a file, and because a
probe that runs beside a process cannot look into it (`become_undumpable`).

Anyone who reaches the port can connect. A probe sends its request at once, so if too many connections have
sent none, the one that has waited longest is dropped: idle connections cannot block a probe.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import cast


def _build_answer(status: str, text: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    return f"{head}Connection: close\r\n\r\n{text}".encode()


_OK = _build_answer("200 OK", "ok\n")
_UNREADY = _build_answer("503 Service Unavailable", "the coordinator has not been heard yet\n")
_READINESS = b"/readyz"
READING_S = 5.0
"""How long a request may take, from when its connection was made."""
_MOST_HEAD_BYTES = 8192
_BACKLOG = 64
"""How many connections are accepted in one turn of the event loop; they are served before more come."""
MOST_WAITING = 3 * _BACKLOG


class HealthPort:
    """Answers from `open` to `close`; belongs to the thread of the event loop.

    Args:
        listening: a listening socket, which it takes over.
        is_ready: whether the worker is ready.
        reading_s: how long a request may take.
    """

    def __init__(
        self, listening: socket.socket, is_ready: Callable[[], bool], reading_s: float = READING_S
    ) -> None:
        self._listening = listening
        self._server: asyncio.Server | None = None
        self.is_ready = is_ready
        self.reading_s = reading_s
        self.waiting: dict[_Connection, None] = {}
        """The connections without a request, in the order in which they were made."""

    async def open(self) -> None:
        """Begin to answer."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), sock=self._listening, backlog=_BACKLOG
        )

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.waiting):
            connection.drop()


class _Connection(asyncio.Protocol):
    """One connection, on which one request is answered."""

    def __init__(self, port: HealthPort) -> None:
        self._port = port
        self._head = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the waiting connections; the one that has waited longest may be dropped."""
        self._transport = cast("asyncio.Transport", transport)  # of uvloop in a worker
        waiting = self._port.waiting
        if len(waiting) >= MOST_WAITING:
            next(iter(waiting)).drop()
        waiting[self] = None
        self._deadline = asyncio.get_running_loop().call_later(self._port.reading_s, self.drop)

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is complete."""
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._transport.write(_OK if self._path != _READINESS or self._port.is_ready() else _UNREADY)
            self._transport.close()
        elif len(self._head) > _MOST_HEAD_BYTES:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # why does not matter
        """Leave the waiting connections."""
        self._leave()

    def drop(self) -> None:
        """Close it at once."""
        self._leave()
        self._transport.abort()

    @property
    def _path(self) -> bytes:
        words = bytes(self._head).split(b" ", 2)
        return words[1].partition(b"?")[0] if len(words) == 3 else b""

    def _leave(self) -> None:
        self._port.waiting.pop(self, None)
        self._deadline.cancel()
