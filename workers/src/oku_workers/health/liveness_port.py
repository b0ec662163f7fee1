"""Answers a liveness probe by HTTP, from the event loop whose life it shows: a loop that is stuck is silent.

It is a port and not a file, because user code runs as the same user and could touch a file, and because a
process that nobody may look into (`become_isolated`) is not within reach of a probe that runs beside it.
"""

import asyncio
import logging
import socket
from contextlib import suppress

_log = logging.getLogger(__name__)

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
_READING_S = 5.0
_MOST_HEAD_BYTES = 8192
_MOST_PROBES = 32
"""At a time: whoever opens more is no probe."""


class LivenessPort:
    """Answers from `open` to `close`; belongs to the thread of the event loop.

    Args:
        listening: a listening socket, which it takes over.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._server: asyncio.Server | None = None
        self._probes = 0

    async def open(self) -> None:
        """Begin to answer."""
        self._server = await asyncio.start_server(
            self._answer, sock=self._listening, limit=_MOST_HEAD_BYTES, start_serving=True
        )

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._probes += 1
        try:
            if self._probes <= _MOST_PROBES:
                with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    async with asyncio.timeout(_READING_S):
                        await reader.readuntil(b"\r\n\r\n")
                        writer.write(_ANSWER)
                        await writer.drain()
        finally:
            self._probes -= 1
            writer.close()
