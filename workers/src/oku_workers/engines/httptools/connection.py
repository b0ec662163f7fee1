"""One connection of the httptools engine: request, response, next request.

A response that is the same, byte for byte, as one that was parsed before is not parsed again: what the parser
makes of a whole response depends on its bytes alone. One that has only other values is recognised by its
shape. What then follows is the hot path of the engine, which `exchange` has. All other responses go through a
`ResponseReader`, which is made when it is first needed.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol

from oku_core.accounting.outcome import OK, PROTOCOL_ERROR, TIMEOUT
from oku_core.http_client.connector import OriginConnection
from oku_core.http_client.error_reason import UNASKED
from oku_core.http_client.http1_connection import Http1Connection
from oku_core.http_client.response_reader import ResponseReader
from oku_workers.engines.http.request_timeout import RequestTimeout
from oku_workers.engines.http.response_counting import count_answer
from oku_workers.engines.httptools.exchange import (
    CLOSED,
    CONNECTING,
    IDLE,
    READING,
    SENDING,
    SENT,
    AnswerBatch,
    Exchange,
)
from oku_workers.engines.httptools.request import BuildRequest
from oku_workers.executions.execution import Execution
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.speedups.extension import write

if TYPE_CHECKING:
    from oku_core.http_client.idle_pool import PooledConnector
    from oku_workers.engines.httptools.route import Route

LARGE_REQUEST_BYTES = 16_384
"""A longer request may be answered before it is out; a shorter one is out, unless the socket was full."""


class Owner(Protocol):
    """The engine of a connection, as far as the connection knows it.

    Attributes:
        limit: the longest time of a request.
        feed: gives the indices.
        build: makes the bytes of request `i`, if all go to one origin and may go at any time, and nothing
            follows them; else None. They are empty if the request cannot be sent.
        turns: index `i` takes the route `turns[i % len(turns)]`; None if there is only one route.
        batch: where answers wait to be counted.
    """

    batch: AnswerBatch
    limit: RequestTimeout
    feed: FeedProtocol
    build: BuildRequest | None
    turns: Sequence["Route[Connection]"] | None

    def go_on(self, connection: "Connection", now_ns: int) -> None:
        """A response is complete, its connection is free for another request."""
        ...

    def lose(self, connection: "Connection", outcome: int, reason: object) -> None:
        """A connection is of no further use; its request, if it has one, ends with an outcome."""
        ...

    def release(self, connection: "Connection") -> None:
        """A response is complete, its connection cannot take another request."""
        ...

    def forget(self, connection: "Connection") -> None:
        """A connection has ended for good."""
        ...


class Connection(Exchange, Http1Connection, OriginConnection):
    """One connection, with at most one request in flight on it.

    Args:
        owner: its engine.
        route: what its first request is; the origin of it is where the connection goes.
        request: what to send first; nothing if it is made before there is a request for it.

    Attributes:
        origin: where it goes.
    """

    __slots__ = (
        "_first_ns",
        "_is_paused",
        "_owner",
        "_prepared_for",
        "_reader",
        "_request",
        "_socket_file",
        "_times",
        "_transport",
        "_unsent",
        "begun_ns",
        "connect_us",
        "origin",
    )

    _route: "Route[Connection]"
    _write_now = staticmethod(write)

    def __init__(self, owner: Owner, route: "Route[Connection]", request: bytes = b"") -> None:
        """A connection that is still to be made, for the first request on it."""
        assert route.origin is not None
        super().__init__()
        self.origin: PooledConnector[Connection] = route.origin
        self.tally = None
        self.coordinate = self.lateness_us = 0
        self.since_ns = monotonic_ns()
        self._owner = owner
        self._route = route
        self._feed = owner.feed
        self._build = owner.build
        self._turns = owner.turns
        self._batch = owner.batch
        self._state = CONNECTING
        self._request = request
        self._reader: ResponseReader | None = None
        self._prepared_for: Route[Connection] | None = None
        """The route whose answers the reader expects."""
        self._first_ns = 0
        """When the first piece of an answer came that has not come as a whole."""
        self._times: tuple[int, int | None] | None = None
        """How long TCP and TLS took, in µs, for the tally of the first request."""

    @property
    def execution(self) -> Execution | None:
        """What the request in flight belongs to; None without one."""
        return self.tally.execution if self.tally is not None else None

    def start_request(
        self, route: "Route[Connection]", tally: Tally, coordinate: int, now_ns: int, due_ns: int
    ) -> None:
        """Set the request that is in flight from now on; `send` sends it."""
        self._route = route
        self.tally = tally
        self.coordinate = coordinate
        self.since_ns = now_ns
        self.lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        self._build = self._owner.build
        if self._times is not None:
            self._record_times(tally)

    def send(self, request: bytes) -> None:
        """Send the request that was noted; there was none in flight."""
        self._state = SENT
        self._write(request, self._route.body)

    def leave_to_owner(self) -> None:
        """Have the engine decide what follows on the request in flight."""
        self._build = None

    def rest(self, now_ns: int) -> None:
        """Wait for a request."""
        self.tally = None
        self.since_ns = now_ns
        self._state = IDLE

    def close(self) -> None:
        """End the connection at once; the caller has accounted for the request that is in flight on it."""
        if self._state not in (CONNECTING, CLOSED):
            self._transport.abort()
        self._state = CLOSED
        self.tally = self._unsent = None
        if self._reader is not None:
            self._reader.end()

    @property
    def is_usable(self) -> bool:
        """Whether it is idle and the server has not hung up."""
        return self._state == IDLE and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected, TLS included: the first request can be sent."""
        super().connection_made(transport)
        if self._state == CLOSED:
            self._transport.abort()
            return
        self._times = self.measure()
        if self.tally is None:
            now_ns = monotonic_ns()
            self.rest(now_ns)
            self.origin.idle.rest(self, now_ns)
            return
        self._record_times(self.tally)
        self._state = SENT
        request, self._request = self._request, b""
        self._write(request, self._route.body)

    def _end(self, status: int, received: int, now_ns: int) -> None:
        """Count an answer that is ok unless it is late, and have the engine decide what follows."""
        tally, coordinate, lateness_us = self.tally, self.coordinate, self.lateness_us
        latency_ns, route = now_ns - self.since_ns, self._route
        parsed = OK, status, received, ""
        if latency_ns > route.ok_ns:
            parsed = self._owner.limit.judge(parsed, latency_ns)
        self._owner.go_on(self, now_ns)
        assert tally is not None
        count_answer(tally, coordinate, parsed, latency_ns, lateness_us)

    def _count_late(self, status: int, received: int, latency_ns: int) -> None:
        """Count an answer that is late, in the middle of taking the next request."""
        assert self.tally is not None
        parsed = self._owner.limit.judge((OK, status, received, ""), latency_ns)
        count_answer(self.tally, self.coordinate, parsed, latency_ns, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        if self._state in (SENDING, READING):
            self._read_rest(exc)
        reader = self._reader
        if self._state != CLOSED and self._end_response(reader, exc):
            assert reader is not None
            self._finish(reader)
        self._owner.forget(self)

    def _fail(self, outcome: int, cause: object) -> None:
        self._owner.lose(self, outcome, cause)

    def _record_times(self, tally: Tally) -> None:
        """Tell the tally of the first request how long it took to connect."""
        assert self._times is not None
        connect_us, tls_us = self._times
        self._times = None
        tally.record_connection(connect_us, tls_us)

    def _write_rest(self, request: bytes, sent: int) -> None:
        """Send what the socket has not taken, or all of it, and the body that follows."""
        self._write_in_pieces(request, sent, self._route.body)

    def _write_in_pieces(self, request: bytes, sent: int, body: bytes = b"") -> None:
        if sent or body or len(request) > LARGE_REQUEST_BYTES:
            self._state = SENDING
        super()._write_in_pieces(request, sent, body)

    def _read(self, data: bytes) -> None:
        if self.tally is None:
            if self._state != CLOSED:  # nothing was asked for
                self._owner.lose(self, PROTOCOL_ERROR, UNASKED)
            return
        is_whole, is_first = self._state == SENT, self._state != READING
        self._state = READING
        reader = self._reader
        if reader is None:
            reader = self._reader = ResponseReader(has_bodies=self._route.has_bodies)
        if self._prepared_for is not self._route:
            self._route.prepare(reader)
            self._prepared_for = self._route
        if self._read_piece(reader, data):
            self._finish(reader, data if is_whole else b"")
        elif is_first:
            self._first_ns = monotonic_ns()

    def _finish(self, reader: ResponseReader, whole: bytes = b"") -> None:
        """A response that was read is complete; `whole` are its bytes if they came in one piece."""
        now_ns = monotonic_ns()
        tally, coordinate, lateness_us = self.tally, self.coordinate, self.lateness_us
        latency_ns, route = now_ns - self.since_ns, self._route
        is_kept = reader.is_kept and route.keeps_connections
        parsed = route.judge(reader)
        # Only what is ok needs no more of its request than to be counted.
        if whole and is_kept and parsed[0] == OK:
            route.learn(whole, parsed)
        if latency_ns > self._route.ok_ns:
            parsed = self._owner.limit.judge(parsed, latency_ns)
        if self._first_ns:
            if tally is not None and parsed[0] != TIMEOUT:
                tally.record_split(latency_ns // 1000, (self._first_ns - self.since_ns) // 1000)
            self._first_ns = 0
        reader.reset()
        # A server that answers early need not read the rest of the request; the next one would wait for it.
        if is_kept and self.is_sent:
            self._owner.go_on(self, now_ns)
        else:
            self._owner.release(self)
        assert tally is not None
        count_answer(tally, coordinate, parsed, latency_ns, lateness_us)
