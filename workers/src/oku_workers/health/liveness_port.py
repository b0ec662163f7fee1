"""Answers a liveness probe by HTTP, from the event loop whose life it shows: a loop that is stuck is silent.

It is a port and not a file, because user code runs as the same user and could touch a file, and because a
process that nobody may look into (`become_undumpable`) is not within reach of a probe that runs beside it.

Anyone who reaches the port can connect. A probe sends its request at once, so if too many connections have
sent none, the one that has waited longest is dropped: idle connections cannot block a probe.
"""

import asyncio
import socket
from typing import cast

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
READING_S = 5.0
"""How long a request may take, from when its connection was made."""
_MOST_HEAD_BYTES = 8192
_BACKLOG = 64
"""How many connections are accepted in one turn of the event loop; they are served before more come."""
MOST_WAITING = 3 * _BACKLOG


class LivenessPort:
    """Answers from `open` to `close`; belongs to the thread of the event loop.

    Args:
        listening: a listening socket, which it takes over.
        reading_s: how long a request may take.
    """

    def __init__(self, listening: socket.socket, reading_s: float = READING_S) -> None:
        self._listening = listening
        self._reading_s = reading_s
        self._server: asyncio.Server | None = None
        self._waiting: dict[_Connection, None] = {}
        """The connections without a request, in the order in which they were made."""

    async def open(self) -> None:
        """Begin to answer."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self._waiting, self._reading_s),
            sock=self._listening,
            backlog=_BACKLOG,
        )

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._waiting):
            connection.drop()


class _Connection(asyncio.Protocol):
    """One connection, on which one request is answered.

    Args:
        waiting: the connections without a request, which it joins.
        reading_s: how long its request may take.
    """

    def __init__(self, waiting: dict["_Connection", None], reading_s: float) -> None:
        self._waiting = waiting
        self._reading_s = reading_s
        self._head = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the waiting connections; the one that has waited longest may be dropped."""
        self._transport = cast("asyncio.Transport", transport)  # of uvloop in a worker
        if len(self._waiting) >= MOST_WAITING:
            next(iter(self._waiting)).drop()
        self._waiting[self] = None
        self._deadline = asyncio.get_running_loop().call_later(self._reading_s, self.drop)

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is complete."""
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._transport.write(_ANSWER)
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

    def _leave(self) -> None:
        self._waiting.pop(self, None)
        self._deadline.cancel()
