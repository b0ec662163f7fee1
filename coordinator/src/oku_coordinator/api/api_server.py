"""The API's port: aiohttp's server, with limits on the load that a caller without the token can cause.

aiohttp has no limit on connections, closes one that has sent half a head only after an hour, decompresses
bodies, and logs a traceback for each malformed request. Here, every connection has a place in a
`ConnectionTable`, and malformed requests are logged once a minute.
"""

import asyncio
import socket
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError

from oku_coordinator.api.authentication import LOG_THROTTLE, LogThrottle
from oku_coordinator.api.connection_table import (
    ConnectionLimits,
    ConnectionPhase,
    ConnectionTable,
    DropReason,
    find_client,
)

_SWEEP_S = 1.0
_SHUTDOWN_S = 1.0
_LINGER_S = 2.0
"""How long the rest of a body is read and discarded after its request was answered."""
_MOST_HEADERS = 64
_ACCEPTED_AT_ONCE = 16
"""New connections per iteration of the event loop: these are read and answered before more are accepted."""
_BACKLOG = 1024
_LONGEST_TEXT = 200
_REFUSAL = b'{"error": "too many connections from this address are busy"}'
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_REFUSAL), _REFUSAL)
)


class ApiServer:
    """Serves an application with a `RefusedCallers` on one listening socket."""

    def __init__(self, api: web.Application, limits: ConnectionLimits | None = None) -> None:
        self._runner = web.AppRunner(api, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        self._limits = limits or ConnectionLimits()
        self._throttle = api[LOG_THROTTLE]
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def start(self, listening: socket.socket) -> None:
        """Accept connections on a listening socket."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        table = ConnectionTable(self._limits, loop.time)
        manager = self._runner.server
        assert manager is not None

        def connect() -> ApiConnection:
            return ApiConnection(manager, loop, table, self._throttle)

        def sweep() -> None:
            table.drop_overdue()
            self._throttle.flush()
            self._sweeping = loop.call_later(_SWEEP_S, sweep)

        self._server = await loop.create_server(connect, sock=listening, backlog=_ACCEPTED_AT_ONCE)
        # The loop accepts as many at once as the backlog of the socket holds.
        listening.listen(_BACKLOG)
        sweep()

    async def stop(self) -> None:
        """Close the socket and end the open connections."""
        if self._server is not None:
            self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._runner.cleanup()


class ApiConnection(web.RequestHandler):
    """One connection of the API, served by aiohttp; it records its phases in the table."""

    __slots__ = ("_answered", "_table", "_throttle", "_wire", "origin")

    def __init__(
        self,
        manager: web.Server,
        loop: asyncio.AbstractEventLoop,
        table: ConnectionTable,
        throttle: LogThrottle,
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # so does aiohttp's own runner
            auto_decompress=False,
            lingering_time=_LINGER_S,
            max_headers=_MOST_HEADERS,
        )
        self._answered = 0
        self._table = table
        self._throttle = throttle
        self.origin = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit a new connection, or answer that there is no room for it."""
        assert isinstance(transport, asyncio.Transport)
        self._wire = transport
        peer = transport.get_extra_info("peername")
        self.origin = find_client(peer[0]) if isinstance(peer, tuple) else ""
        if self._table.admit(self):
            super().connection_made(transport)
        else:
            self._throttle.warn("refused", f"a connection from {self.origin} is refused: too many are busy")
            transport.write(_REFUSED)
            transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the connection."""
        self._table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a head, or one or more complete ones."""
        requests = self._request_count
        super().data_received(data)
        if self._request_count > requests:
            self._table.enter(self, ConnectionPhase.BUSY)
        else:
            self._table.record_partial_head(self, len(data))

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write a response."""
        if not request.content.is_eof():
            # Do not wait for a body that is not needed.
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._answered += 1
            if self._answered == self._request_count:
                self._table.enter(self, ConnectionPhase.IDLE if resp.keep_alive else ConnectionPhase.CLOSING)

    def pause_writing(self) -> None:
        """Record that the client reads more slowly than we write."""
        super().pause_writing()
        self._table.record_stall(self, is_stalled=True)

    def resume_writing(self) -> None:
        """Record that the client reads again."""
        super().resume_writing()
        self._table.record_stall(self, is_stalled=False)

    def drop(self, reason: DropReason) -> None:
        """Close it at once."""
        self._throttle.warn(reason.name, f"a connection from {self.origin} is closed: {reason}")
        self._wire.abort()

    def log_exception(self, *_: Any, **kw: Any) -> None:
        """Log that a request could not be read, or that aiohttp failed."""
        error = kw.get("exc_info")
        if isinstance(error, HttpProcessingError):
            self._throttle.warn("malformed", f"a request from {self.origin} is malformed: {_describe(error)}")
        else:
            self._throttle.warn("failed", f"a request from {self.origin} failed", error)


def _describe(error: HttpProcessingError) -> str:
    """Describe an invalid request without its content, which may be a mistyped token."""
    if isinstance(error, InvalidURLError):
        return "Invalid URL"
    return str(error.message).partition(":")[0][:_LONGEST_TEXT]
