"""The connections of workers to a coordinator that has no broker.

The hub belongs to the event loop. A connection begins with a challenge, which only a process with the key
answers; then frames come in, and go out to one process or to all. Frames that a worker does not read wait in
its connection, up to a bound.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable

from oku_core.broker.frames import (
    HEADER_BYTES,
    LONGEST_GREETING,
    draw_challenge,
    open_greeting,
    read_frame_head,
)
from oku_core.messaging.signing import (
    MalformedMessageError,
    MessageKind,
    Reject,
    RejectedMessageError,
    Signer,
)
from oku_core.process.supervision import Health

MOST_UNREAD = 8_000_000
"""How many bytes wait at most for a worker that does not read, beside one message of any length."""
GREETS_WITHIN_S = 10.0
_MOST_CONNECTIONS = 2_000
"""How many there are at most, those without a greeting included."""
_READ_BYTES = 1 << 20

OnConnect = Callable[[], None]
Receive = Callable[[MessageKind, bytes], None]
"""Takes the kind and the body of each message."""


class SocketHub:
    """Accepts connections from `serve` on.

    Args:
        listening: where workers connect; another process may hold it, too.
        reject: called for each message that is dropped.
    """

    def __init__(self, listening: socket.socket, signer: Signer, reject: Reject) -> None:
        self._listening = listening
        self._signer = signer
        self._reject = reject
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._serving: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop
        self._thread = 0
        self._receive: Receive
        self._on_connect: OnConnect

    def open(self, receive: Receive, on_connect: OnConnect) -> None:
        """Belong to the running event loop from now on.

        Args:
            receive: called with each message; its seal is not checked yet.
            on_connect: called after each greeting.
        """
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._receive, self._on_connect = receive, on_connect

    async def serve(self, health: Health) -> None:
        """Accept connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        self._listening.settimeout(0)
        while True:
            connection, _ = await loop.sock_accept(self._listening)
            health.record_success()
            if len(self._serving) >= _MOST_CONNECTIONS:
                connection.close()
                continue
            task = loop.create_task(self._serve(connection))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    def post(self, frames: Iterable[tuple[str, bytes]]) -> None:
        """Send frames, each to a process by its incarnation, or to all if that is empty; from any thread.

        A frame for a process that is not connected, or that does not read, is dropped.
        """
        if threading.get_ident() == self._thread:
            self._write(frames)
        else:
            self._loop.call_soon_threadsafe(self._write, frames)

    def close(self, wait_s: float) -> None:
        """Send waiting frames, for at most this long, and close every connection; from another thread."""
        asyncio.run_coroutine_threadsafe(self._close(wait_s), self._loop).result()

    def _write(self, frames: Iterable[tuple[str, bytes]]) -> None:
        for incarnation, frame in frames:
            writers = self._writers.values() if not incarnation else (self._writers.get(incarnation),)
            for writer in writers:
                if writer is not None and _has_room(writer, len(frame)):
                    writer.write(frame)

    async def _close(self, wait_s: float) -> None:
        writers = list(self._writers.values())
        for writer in writers:
            writer.close()
        if any(writer.transport.get_write_buffer_size() for writer in writers):
            closing = [asyncio.ensure_future(writer.wait_closed()) for writer in writers]
            await asyncio.wait(closing, timeout=wait_s)
        for task in self._serving:
            task.cancel()
        self._listening.close()

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_READ_BYTES)
        incarnation = ""
        try:
            incarnation = await self._greet(reader, writer)
            self._writers[incarnation] = writer
            self._on_connect()
            while True:
                kind, body = await _read_frame(reader)
                self._receive(kind, body)
        except RejectedMessageError as error:
            self._reject(error)
        except (OSError, EOFError, TimeoutError):
            pass  # the worker has ended, or connects again
        finally:
            if self._writers.get(incarnation) is writer:
                del self._writers[incarnation]
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        challenge = draw_challenge()
        writer.write(challenge)
        async with asyncio.timeout(GREETS_WITHIN_S):
            kind, body = await _read_frame(reader, LONGEST_GREETING)
        if kind != MessageKind.GREETING:
            raise MalformedMessageError(f"a connection begins with a message of kind {kind}")
        return open_greeting(self._signer, challenge, body)


def _has_room(writer: asyncio.StreamWriter, length: int) -> bool:
    unread = writer.transport.get_write_buffer_size()
    return not writer.is_closing() and (not unread or unread + length <= MOST_UNREAD)


async def _read_frame(reader: asyncio.StreamReader, *longest: int) -> tuple[MessageKind, bytes]:
    kind, length = read_frame_head(await reader.readexactly(HEADER_BYTES), *longest)
    return kind, await reader.readexactly(length)
