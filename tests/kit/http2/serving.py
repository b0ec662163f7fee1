"""A server of HTTP/2 in a thread of its own, for runs of whole processes."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kit.http2.server import Http2Server


@contextmanager
def serving(server: Http2Server) -> Iterator[Http2Server]:
    """Serves until the end of the block; what it remembers may be read meanwhile."""
    started, ended = threading.Event(), asyncio.Event()

    async def serve() -> None:
        await server.start()
        started.set()
        await ended.wait()
        await server.end()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
