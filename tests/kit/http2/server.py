"""A server of HTTP/2 that answers as a script says, stream by stream, and counts what reaches it.

It keeps the rules itself unless its script breaks them, and holds its clients to them.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kit.http2.frames import ErrorCode, Frame, FrameReader
from tests.kit.http2.session import Session, StreamRequest
from tests.kit.servers.hostile_server import set_reset_on_close


@dataclass
class StreamExchange:
    """One request and the ways to answer it.

    Attributes:
        request: what came.
        turn: how many requests came on this connection before it.
        connection: what it came on.
    """

    request: StreamRequest
    turn: int
    connection: "Connection"

    @property
    def stream(self) -> int:
        """The stream of the request."""
        return self.request.stream

    @property
    def index(self) -> int:
        """What the request asks for, if that is a number: `/7`, or `/any/7`."""
        return int(self.request.target.rpartition("/")[2])

    @property
    def session(self) -> Session:
        """What is known of the connection."""
        return self.connection.session

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for an answer any more."""
        return self.connection.is_closing or self.session.streams[self.stream].is_answered or self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether the client has reset the stream."""
        return self.session.streams[self.stream].reset is not None

    async def respond(
        self, status: int = 200, body: bytes = b"", *headers: tuple[str, str], pause_s: float = 0.0
    ) -> None:
        """Answer as a whole, or with a pause between head and body."""
        if self.is_over:
            return
        length = ("content-length", str(len(body)))
        self.session.send_headers(self.stream, [(":status", str(status)), *headers, length], end=not body)
        if pause_s:
            await asyncio.sleep(pause_s)
        if body:
            await self.send_body(body)

    async def send_body(self, body: bytes, *, end: bool = True) -> None:
        """Send a body as far as the windows of the client allow, and wait until they do."""
        view = memoryview(body)
        while view and not self.is_over:
            moved, room = self.session.moved, self.session.find_room(self.stream)
            if room and not self.connection.is_full:
                piece, view = bytes(view[:room]), view[room:]
                self.session.send_data(self.stream, piece, end=end and not view)
            elif room:
                await self.connection.drain()
            else:
                await moved.wait()

    def send(self, content: bytes) -> None:
        """Send any bytes."""
        self.connection.send(content)

    def refuse(self) -> None:
        """Say that the request was not looked at."""
        self.session.reset(self.stream, ErrorCode.REFUSED_STREAM)

    def reset_stream(self, code: int = ErrorCode.CANCEL) -> None:
        """Give the request up."""
        self.session.reset(self.stream, code)

    def hang_up(self) -> None:
        """Close the connection."""
        self.connection.close()

    def reset(self) -> None:
        """End the connection with an RST."""
        self.connection.reset()


Script = Callable[[StreamExchange], Coroutine[Any, Any, None]]
"""Answers a request."""
Play = Callable[["Connection"], Awaitable[None]]
"""Plays the server on a connection, frame by frame."""


@dataclass
class Http2Server:
    """Serves on the loopback from `start` to `end`.

    Attributes:
        script: answers each request, all at the same time.
        play: is the server on each connection instead; nothing is sent or answered beside what it does.
        greet: called with each new connection before anything is sent; what it returns is waited for.
        settings: what the server says of itself; may be changed, for connections to come.
        hears_early: whether requests are answered before their bodies are there.
        grants: whether clients may send bodies of any length.
        tls: speaks TLS so.
        host: the address that it listens on.
        port: the port that it listens on; 0 takes a free one.
        requests: all that came, in their order.
        most_at_once: the most requests that waited for their answer at the same time.
        made: all connections, in their order.
    """

    script: Script | None = None
    play: Play | None = None
    greet: Callable[["Connection"], Awaitable[None]] | None = None
    settings: Mapping[int, int] = field(default_factory=dict)
    hears_early: bool = False
    grants: bool = True
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    port: int = 0
    requests: list[StreamRequest] = field(default_factory=list)
    most_at_once: int = 0
    made: list["Connection"] = field(default_factory=list)
    _at_once: int = 0
    _server: asyncio.Server | None = None

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
    def connections(self) -> int:
        """How many were made."""
        return len(self.made)

    @property
    def open_connections(self) -> int:
        """How many are open."""
        return sum(not connection.is_lost for connection in self.made)

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is connected."""
        return not self.open_connections

    @property
    def faults(self) -> list[str]:
        """What clients did that they must not."""
        return [fault for connection in self.made for fault in connection.session.faults]

    async def start(self) -> None:
        """Listen."""
        if self.tls is not None:
            self.tls.set_alpn_protocols(["h2"])
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Wire(Connection(self)), self.host, self.port, backlog=2048, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Hang up on everybody."""
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*(connection.end() for connection in self.made), return_exceptions=True)

    async def answer(self, exchange: StreamExchange) -> None:
        """Follow the script."""
        assert self.script is not None
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.script(exchange)
        finally:
            self._at_once -= 1


class Connection:
    """One connection of a server.

    Attributes:
        session: what is known of it, unless it is played.
        is_lost: whether it has ended.
    """

    def __init__(self, server: Http2Server) -> None:
        self.session = Session(
            self.send, server.settings, hears_early=server.hears_early, grants=server.grants
        )
        self.is_lost = False
        self._has_begun = self._has_ended = False
        self._early = b""
        self._server = server
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._reader = FrameReader()
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._drained = asyncio.Event()
        self._drained.set()
        self._transport: asyncio.Transport

    @property
    def peer(self) -> str:
        """The address of the client."""
        return str(self._transport.get_extra_info("peername")[0])

    @property
    def is_closing(self) -> bool:
        """Whether nothing can be sent on it any more."""
        return self._has_ended or self._transport.is_closing()

    @property
    def is_full(self) -> bool:
        """Whether much waits for the client to read it."""
        return not self._drained.is_set()

    def send(self, content: bytes) -> None:
        """Send any bytes, unless the connection has ended."""
        if not self.is_closing:
            self._transport.write(content)

    async def receive(self) -> Frame:
        """The next frame of the client; `ConnectionError` when there is none any more."""
        frame = await self._frames.get()
        if frame is None:
            self._frames.put_nowait(None)
            raise ConnectionError("the client has hung up")
        return frame

    async def drain(self) -> None:
        """Wait until the client has read most of what was sent."""
        await self._drained.wait()

    def pause(self) -> None:
        """Read nothing more until `resume`."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Send nothing more; what the client still sends is counted, except with TLS."""
        if self.is_closing:
            return
        self._has_ended = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def reset(self) -> None:
        """End it with an RST."""
        set_reset_on_close(self._transport.get_extra_info("socket"))
        self._transport.abort()

    async def end(self) -> None:
        """End it, whatever it is at."""
        self._transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(self, transport: asyncio.Transport) -> None:
        """A client has connected."""
        self._transport = transport
        self._server.made.append(self)
        self._start(self._begin())

    def take(self, data: bytes) -> None:
        """The client has sent something."""
        if self._server.play is not None:
            for frame in self._reader.feed(data):
                self._frames.put_nowait(frame)
        elif not self._has_begun:
            self._early += data
        else:
            self._serve(data)

    def note_full(self, *, is_full: bool) -> None:
        """Much waits for the client to read it, or does no more."""
        if is_full:
            self._drained.clear()
        else:
            self._drained.set()

    def lose(self) -> None:
        """It has ended."""
        self.is_lost = True
        self._drained.set()
        self._frames.put_nowait(None)
        for task in self._tasks:
            task.cancel()

    async def _begin(self) -> None:
        if self._server.greet is not None:
            await self._server.greet(self)
        if self._server.play is None:
            self.session.begin()
            self._has_begun = True
            self._serve(self._early)
            return
        with contextlib.suppress(ConnectionError):
            await self._server.play(self)

    def _serve(self, data: bytes) -> None:
        for request in self.session.feed(data):
            self._server.requests.append(request)
            self._start(self._server.answer(StreamExchange(request, self._turn, self)))
            self._turn += 1

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.session.faults.append(f"the script failed: {error!r}")


class _Wire(asyncio.Protocol):
    """What asyncio tells, told to a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection.begin(transport)

    def data_received(self, data: bytes) -> None:
        self._connection.take(data)

    def pause_writing(self) -> None:
        self._connection.note_full(is_full=True)

    def resume_writing(self) -> None:
        self._connection.note_full(is_full=False)

    def connection_lost(self, _: Exception | None) -> None:
        self._connection.lose()


ServeHttp2 = Callable[..., Awaitable[Http2Server]]
"""Starts a server, with a script and the settings of `Http2Server`."""


def always(status: int = 200, body: bytes = b"hi", *headers: tuple[str, str]) -> Script:
    """Answer every request alike."""

    async def script(exchange: StreamExchange) -> None:
        await exchange.respond(status, body, *headers)

    return script


async def stall(_: StreamExchange) -> None:
    """Never answer."""
    await asyncio.Event().wait()
