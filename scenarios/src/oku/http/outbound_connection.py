"""The connections of scenarios: at most one request is in flight on each; an origin keeps the idle ones."""

import os
from typing import TYPE_CHECKING

from yarl import URL

from oku_core.accounting.outcome import TIMEOUT
from oku_core.http_client.client_rules import build_basic
from oku_core.http_client.connector import Connector, OriginConnection, Way
from oku_core.http_client.http1_connection import NO_FILE, Http1Connection
from oku_core.http_client.idle_pool import IdlePool
from oku_core.http_client.response_reader import ResponseReader

if TYPE_CHECKING:
    import asyncio


class TransportError(Exception):
    """There is no complete answer.

    Attributes:
        outcome: what the request counts as, a place in `OUTCOMES`.
        cause: the error that was met, or a text of ours.
    """

    def __init__(self, outcome: int, cause: object) -> None:
        super().__init__(str(cause))
        self.outcome = outcome
        self.cause = cause


class OutboundConnection(Http1Connection, OriginConnection):
    """One connection, TLS and tunnel included.

    Attributes:
        reader: has read the answer, once the future of `ask` is done.
        deadline_ns: when the request in flight has taken too long, by the monotonic clock.
    """

    __slots__ = (
        "_file", "_is_paused", "_socket_file", "_transport", "_unsent", "_waiter",
        "begun_ns", "connect_us", "deadline_ns", "reader",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.reader = ResponseReader(has_bodies=True)
        self.deadline_ns = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent on it."""
        return not self._transport.is_closing()

    def ask(self, request: bytes, waiter: "asyncio.Future[None]", *, has_body: bool, kept_bytes: int) -> None:
        """Send a request.

        Args:
            request: all of it.
            waiter: done when the answer is complete; fails with a `TransportError`.
            has_body: whether the answer has a body; those to HEAD have none.
            kept_bytes: how much of its body is kept.
        """
        reader = self.reader
        if reader.has_bodies is not has_body:
            # The parser of the other one would wait for a body, or for none.
            reader = self.reader = ResponseReader(has_bodies=has_body)
        reader.kept_bytes = kept_bytes
        reader.reset()
        self._waiter = waiter
        self._write(request)

    def expire(self) -> None:
        """The request in flight has taken too long."""
        self._fail(TIMEOUT, "no complete answer in time")

    def close(self) -> None:
        """End the connection at once."""
        self._waiter = self._unsent = None
        self._transport.abort()
        self.reader.end()

    def data_received(self, data: bytes) -> None:
        """A piece of an answer has come, mostly the whole of it."""
        if self._waiter is None:  # there is no request
            self.close()
        elif self._read_piece(self.reader, data):
            self._complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended, and with it an answer that has no other end."""
        if self._waiter is not None:
            self._read_rest(exc)
        if self._waiter is not None and self._end_response(self.reader, exc):
            self._complete()
        self._unsent = None
        self.reader.end()

    def _complete(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, outcome: int, cause: object) -> None:
        waiter = self._waiter
        self.close()
        if waiter is not None and not waiter.done():
            waiter.set_exception(TransportError(outcome, cause))

    def _write(self, request: bytes) -> None:
        """Send at once what the socket takes; the transport would first serve all other connections."""
        sent = 0
        if self._file != NO_FILE:
            try:  # noqa: SIM105  # `suppress` takes longer than all else here
                sent = os.write(self._file, request)
            except OSError:  # it is full, or `_write_in_pieces` meets the error, too
                pass
        if sent < len(request):
            self._write_in_pieces(request, sent)


class ClientOrigin:
    """One scheme, host and port.

    Args:
        url: a URL there.
        way: how connections are made.

    Attributes:
        host: host and port as the header `Host` has them.
        common: the headers that are the same for all requests there, as bytes; None until they are known.
        before_path: stands before the path in a request line; only a proxy needs something there.
        idle: the connections that wait for a request.
    """

    def __init__(self, url: URL, way: Way) -> None:
        self.host = url.host_port_subcomponent or ""
        self.common: bytes | None = None
        self.before_path = self._proxy_authorization = ""
        if way.proxy is not None and url.scheme != "https":
            self.before_path = f"http://{self.host}"
            self._proxy_authorization = build_basic(way.proxy.user, way.proxy.password)
        self.idle: IdlePool[OutboundConnection] = IdlePool()
        self._connector = Connector(url, way)

    def list_proxy_headers(self) -> list[tuple[str, str]]:
        """The headers for a proxy that forwards requests."""
        authorization = self._proxy_authorization
        return [("Proxy-Authorization", authorization)] if authorization else []

    async def connect(self) -> OutboundConnection:
        """Make a connection, which may raise an `OSError`."""
        connection = OutboundConnection()
        await self._connector.connect(connection)
        return connection

    def close(self) -> None:
        """Close idle connections, and give up a lookup that is under way."""
        self._connector.close()
        self.idle.close()
