"""The connections of scenarios: at most one request is in flight on each; an origin keeps the idle ones."""

import asyncio
from collections.abc import Callable
from time import monotonic_ns

from yarl import URL

from oku_core.accounting.outcome import CONNECT_ERROR, TIMEOUT
from oku_core.http_client.connector import OriginConnection, Way
from oku_core.http_client.http1_connection import Http1Connection, TransportError
from oku_core.http_client.idle_pool import PooledConnector
from oku_core.http_client.response_reader import ResponseReader

BuildHeaders = Callable[[int], bytes]
"""Makes the headers of the request of an index, each with its line break."""


class OutboundConnection(Http1Connection, OriginConnection):
    """One connection, TLS and tunnel included.

    Args:
        is_forwarded: whether its peer is a proxy that forwards plain requests.

    Attributes:
        reader: has read the answer, once the future of `ask` is done.
        deadline_ns: when the request in flight has taken too long, by the monotonic clock.
    """

    __slots__ = (
        "_file", "_is_forwarded", "_is_paused", "_socket_file", "_transport", "_unsent", "_waiter",
        "begun_ns", "connect_us", "deadline_ns", "reader",
    )  # fmt: skip

    def __init__(self, *, is_forwarded: bool = False) -> None:
        super().__init__()
        self._is_forwarded = is_forwarded
        self.reader = ResponseReader(has_bodies=True)
        self.deadline_ns = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent on it."""
        return not self._transport.is_closing()

    def ask(self, request: bytes, waiter: asyncio.Future[None], *, has_body: bool, kept_bytes: int) -> None:
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


class ClientOrigin(PooledConnector[OutboundConnection]):
    """One scheme, host and port.

    Args:
        url: a URL there.
        way: how connections are made.

    Attributes:
        proxy: the one of its requests; None without one.
        build_common: makes the headers of all requests; None until they are known.
    """

    def __init__(self, url: URL, way: Way) -> None:
        super().__init__(url, way)
        self.proxy = way.proxy
        self.build_common: BuildHeaders | None = None

    async def open(self, deadline_ns: int) -> OutboundConnection:
        """Make a connection until a time of the monotonic clock; `TransportError` if there is none."""
        connection = OutboundConnection(is_forwarded=self.is_forwarded)
        try:
            async with asyncio.timeout(max(0.0, (deadline_ns - monotonic_ns()) / 1e9)):
                await self.connect(connection)
        except TimeoutError as error:
            # The system may give up first; its error has a number.
            outcome = CONNECT_ERROR if error.errno else TIMEOUT
            raise TransportError(outcome, error) from None
        except (OSError, ValueError) as error:
            raise TransportError(CONNECT_ERROR, error) from None
        return connection
