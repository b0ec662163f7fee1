"""An HTTP proxy that tunnels (`CONNECT`) and forwards (a whole URL as the target), one way for each test."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_PIECE_BYTES = 65_536


@dataclass
class Proxy:
    """Serves on a free port of the loopback from `start` to `end`.

    Attributes:
        asked: the request lines that came, in their order.
        credentials: the `Proxy-Authorization` of each of them, empty without one.
    """

    asked: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _open: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def authority(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0)

    async def end(self) -> None:
        """Hang up on everybody."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._open.values()):
            writer.transport.abort()
        await asyncio.gather(*list(self._open), return_exceptions=True)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            del self._open[task]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, whose requests have no bodies and go to one server."""
        upstream: asyncio.StreamWriter | None = None
        answers: asyncio.Task[None] | None = None
        try:
            while True:
                head = await self._read_head(reader)
                method, target, rest = head.split(" ", 2)
                split = urlsplit(f"//{target}" if method == "CONNECT" else target)
                if upstream is None:
                    up_reader, upstream = await asyncio.open_connection(split.hostname, split.port)
                    if method == "CONNECT":
                        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    answers = asyncio.ensure_future(_pump(up_reader, writer))
                if method == "CONNECT":
                    await _pump(reader, upstream)
                    return
                upstream.write(f"{method} {split.path} {rest}".encode("latin-1"))
        finally:
            if answers is not None:
                answers.cancel()
                await asyncio.gather(answers, return_exceptions=True)
            if upstream is not None:
                upstream.close()

    async def _read_head(self, reader: asyncio.StreamReader) -> str:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *headers = head.rstrip("\r\n").split("\r\n")
        self.asked.append(line)
        values = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in headers)}
        self.credentials.append(values.get("proxy-authorization", ""))
        return head


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
