"""A broker that is far away: a relay on the loopback passes on what comes after a delay."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PIECE_BYTES = 65_536


@contextmanager
def run_far_broker(socket: Path, delay_s: float) -> Iterator[str]:
    """Relay to the broker at a Unix socket, with a delay on each way; gives the URL of the relay."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    relay = _Relay(socket, delay_s)
    try:
        port = asyncio.run_coroutine_threadsafe(relay.start(), loop).result(10)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        asyncio.run_coroutine_threadsafe(relay.end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Relay:
    def __init__(self, socket: Path, delay_s: float) -> None:
        self._socket = socket
        self._delay_s = delay_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def end(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._socket)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):
                while piece := await source.read(_PIECE_BYTES):
                    # Pieces overtake nobody: each waits as long as the one before it.
                    loop.call_later(self._delay_s, sink.write, piece)
                await asyncio.sleep(self._delay_s)
        finally:
            sink.close()
