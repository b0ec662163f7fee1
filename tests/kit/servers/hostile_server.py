"""A server that answers byte by byte as a script says, and counts every request that reaches it.

It parses nothing but the end of each request. When it hangs up it goes on reading until the client does, too,
so that a request that was on its way is counted like any other.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        """The values of a header, in their order."""
        return [value for key, value in self.headers if key.lower() == name]


@dataclass
class Exchange:
    """One request and the way to answer it.

    Attributes:
        request: what came.
        turn: how many requests came on this connection before it.
    """

    request: Request
    turn: int
    transport: asyncio.Transport
    is_over: bool = False

    async def send(self, *parts: bytes, pause_s: float = 0.02) -> None:
        """Send parts so far apart that they arrive by themselves."""
        for number, part in enumerate(parts):
            if number:
                await asyncio.sleep(pause_s)
            if self.transport.is_closing():
                return
            self.transport.write(part)

    async def respond(
        self, status: int = 200, body: bytes = b"", *headers: tuple[str, str], pause_s: float = 0.0
    ) -> None:
        """Answer as a whole, or with a pause between head and body."""
        lines = (f"{name}: {value}" for name, value in headers)
        head = build_response(f"{status} Any", b"", *lines, f"Content-Length: {len(body)}", length=False)
        await self.send(*((head, body) if pause_s else (head + body,)), pause_s=pause_s)

    def hang_up(self) -> None:
        """Close our side of the connection."""
        self.is_over = True
        if self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:  # TLS knows no half of a connection
            self.transport.close()

    def reset(self) -> None:
        """End the connection with an RST."""
        self.is_over = True
        set_reset_on_close(self.transport.get_extra_info("socket"))
        self.transport.abort()


Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class HostileServer:
    """Serves on the loopback from `start` to `end`.

    Attributes:
        script: answers each request.
        greet: called with each new connection, before any request.
        tls: speaks TLS so.
        host: the address that it listens on.
        port: the port that it listens on; 0 takes a free one.
        requests: all that came, in their order.
        connections: how many were made.
        most_at_once: the most requests that waited for their answer at the same time.
    """

    script: Script
    greet: Callable[[asyncio.Transport], None] | None = None
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    _at_once: int = 0
    _server: asyncio.Server | None = None
    _open: set["_Connection"] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.port}"

    @property
    def received(self) -> int:
        """How many requests came."""
        return len(self.requests)

    @property
    def targets(self) -> list[str]:
        """What was asked for, in the order of arrival."""
        return [request.target for request in self.requests]

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is connected."""
        return not self._open

    @property
    def open_connections(self) -> int:
        """How many are connected."""
        return len(self._open)

    async def start(self) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), self.host, self.port, backlog=2048, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Hang up on everybody."""
        if self._server is not None:
            self._server.close()
        tasks = [connection.close() for connection in list(self._open)]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def answer(self, exchange: Exchange) -> None:
        """Follow the script."""
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.script(exchange)
        finally:
            self._at_once -= 1

    def enter(self, connection: "_Connection") -> None:
        """Somebody has connected."""
        self.connections += 1
        self._open.add(connection)

    def leave(self, connection: "_Connection") -> None:
        """Somebody is gone."""
        self._open.discard(connection)


class _Connection(asyncio.Protocol):
    """One connection: counts what comes at once, answers it one by one."""

    def __init__(self, server: HostileServer) -> None:
        self._server = server
        self._received = b""
        self._waiting: asyncio.Queue[Request] = asyncio.Queue()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.enter(self)
        if self._server.greet is not None:
            self._server.greet(transport)
        self._task = asyncio.ensure_future(self._answer_all(transport))

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (request := self._cut_request()) is not None:
            self._server.requests.append(request)
            self._waiting.put_nowait(request)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self._server.leave(self)
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End it, whatever it is at."""
        if self._transport is not None:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _cut_request(self) -> Request | None:
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        if len(rest) < length:
            return None
        self._received = rest[length:]
        return Request(method, target, headers, rest[:length])

    async def _answer_all(self, transport: asyncio.Transport) -> None:
        turn = 0
        while True:
            exchange = Exchange(await self._waiting.get(), turn, transport)
            await self._server.answer(exchange)
            turn += 1
            if exchange.is_over:
                return


Serve = Callable[..., Awaitable[HostileServer]]
"""Starts a server, with a script and the settings of `HostileServer`."""


def set_reset_on_close(connection: socket.socket) -> None:
    """Let the end of a connection be an RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def build_response(status: str = "200 OK", body: bytes = b"", *headers: str, length: bool = True) -> bytes:
    """A response in one piece, with the length of its body unless told otherwise."""
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else [])]
    return "\r\n".join([*lines, "", ""]).encode() + body


def always(*parts: bytes, then: str = "keep", pause_s: float = 0.02) -> Script:
    """Answer every request with the same parts, and then `keep` the connection, `close` or `reset` it."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(*parts, pause_s=pause_s)
        if then == "close":
            exchange.hang_up()
        elif then == "reset":
            await asyncio.sleep(pause_s)
            exchange.reset()

    return script


async def stall(_: Exchange) -> None:
    """Never answer."""
    await asyncio.Event().wait()
