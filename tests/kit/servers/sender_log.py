"""A target that remembers which worker sent each request, and when."""

import asyncio
import threading
import time
from collections import defaultdict
from types import TracebackType
from typing import Self

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class SenderLog:
    """Serves from `with` to its end; workers name themselves in the header `X-Worker`.

    Attributes:
        sent: for each path, the worker of each request and the monotonic seconds at which it came.
    """

    def __init__(self) -> None:
        self.sent: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._port = 0

    @property
    def url(self) -> str:
        """Where it listens; a path may follow."""
        return f"http://127.0.0.1:{self._port}"

    def count_senders(self, path: str) -> dict[str, int]:
        """How many requests each worker has sent to a path."""
        counts: dict[str, int] = {}
        for worker, _ in self.sent[path]:
            counts[worker] = counts.get(worker, 0) + 1
        return counts

    def find_most_at_once(self, path: str) -> int:
        """The largest number of workers between the first and the last request of each at one moment."""
        spans: dict[str, tuple[float, float]] = {}
        for worker, at in self.sent[path]:
            first, _ = spans.get(worker, (at, at))
            spans[worker] = (first, at)
        return max(
            (sum(first <= at <= last for first, last in spans.values()) for at, _ in spans.values()),
            default=0,
        )

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        self._is_up.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Serve nobody any more."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._is_up.set()
        await self._ending.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                self.sent[head[0].split(" ")[1]].append((fields["x-worker"], time.monotonic()))
                writer.write(_ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
