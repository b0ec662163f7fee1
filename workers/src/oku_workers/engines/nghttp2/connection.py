"""One connection of the nghttp2 engine: several requests at a time, each on a stream of its own.

This is the hot path of the engine. A piece is read as a whole: each answer is counted, the next request takes
its place, and all new requests are sent together.
"""

import asyncio
from collections.abc import Iterable
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol, cast

from oku_core.accounting.outcome import DISCONNECTED, OK, PROTOCOL_ERROR, TIMEOUT
from oku_core.http_client.error_reason import CUT_SHORT, HUNG_UP, NO_HTTP2
from oku_core.http_client.http1_connection import NO_FILE, PIECE_BYTES
from oku_workers.engines.http.request_timeout import RequestTimeout
from oku_workers.engines.http.response_counting import abandon, count_answer, count_answers
from oku_workers.engines.nghttp2.request import BuildHeaders, Headers
from oku_workers.engines.nghttp2.route import Origin, RoomyConnection, Stream
from oku_workers.engines.nghttp2.session import Session, SessionClosedError
from oku_workers.feed.feed_protocol import FeedProtocol
from oku_workers.speedups.extension import write

if TYPE_CHECKING:
    from oku_workers.executions.tally import Tally

ALPN = "h2"
"""How TLS names HTTP/2 (RFC 9113, section 3.2)."""


class Owner(Protocol):
    """The engine of a connection, as far as the connection knows it.

    Attributes:
        limit: the longest time of a request.
        feed: gives the indices.
        free: how many more requests may be in flight; negative if there are too many.
        build: makes the headers of request `i`, if all requests are of one kind, without bodies, and may go
            at any time; else None. There are none if the request cannot be sent.
    """

    limit: RequestTimeout
    feed: FeedProtocol
    free: int
    build: BuildHeaders | None

    def on_ready(self, connection: "Connection") -> None:
        """The server has sent its settings: requests can be sent."""
        ...

    def update_room(self, connection: "Connection") -> None:
        """A connection may take another number of streams than before."""
        ...

    def go_on(self, connection: "Connection") -> None:
        """A request has been answered: another one may take its place."""
        ...

    def refill(self, connection: "Connection") -> None:
        """Requests have ended without an answer."""
        ...

    def refill_soon(self, connection: "Connection") -> None:
        """The same, when those that follow may end at once in the same way."""
        ...

    def fail(self, stream: Stream, outcome: int, error: object) -> None:
        """A request has ended without an answer."""
        ...

    def take_back(self, connection: "Connection", stream: Stream) -> None:
        """The server has refused a request unprocessed."""
        ...

    def lose(self, connection: "Connection", error: object) -> None:
        """A connection is of no further use, and has no stream any more."""
        ...

    def forget(self, connection: "Connection") -> None:
        """A connection has ended for good."""
        ...


class Connection(RoomyConnection):
    """One connection, with several requests in flight on it.

    Args:
        owner: its engine.
        origin: where it goes.
        most_streams: how many streams it may have, if the server allows as many.

    Attributes:
        origin: as given.
        since_ns: when it was begun; later, when it became idle.
        heard_ns: when something came from the server last.
        is_ready: whether requests can be sent.
        is_retired: whether it takes no further ones.
    """

    __slots__ = (
        "_feed",
        "_file",
        "_is_closed",
        "_is_flush_scheduled",
        "_is_made",
        "_is_paused",
        "_limit",
        "_most_streams",
        "_owner",
        "_session",
        "_times",
        "_transport",
        "begun_ns",
        "connect_us",
        "heard_ns",
        "is_ready",
        "is_retired",
        "origin",
        "since_ns",
    )

    _transport: asyncio.Transport

    def __init__(self, owner: Owner, origin: Origin, most_streams: int) -> None:
        super().__init__()
        self.origin = origin
        self.since_ns = self.heard_ns = monotonic_ns()
        self.is_ready = self.is_retired = False
        self._owner = owner
        self._feed = owner.feed
        self._most_streams = most_streams
        self._limit = most_streams
        """How many streams it may have; the server may allow fewer."""
        self._session = Session()
        self._file = NO_FILE
        self._is_made = self._is_closed = self._is_paused = self._is_flush_scheduled = False
        self._times: tuple[int, int | None] | None = None
        """How long TCP and TLS took, in µs, for the tally of the first request."""

    @property
    def streams(self) -> Iterable[Stream]:
        """The requests in flight on it."""
        return self._session.streams.values()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight on it."""
        return not self._session.streams

    @property
    def was_used(self) -> bool:
        """Whether any request was sent on it."""
        return self.is_ready and self._times is None

    @property
    def has_room(self) -> bool:
        """Whether another request can be sent on it now."""
        return (
            self.is_ready
            and not self.is_retired
            and len(self._session.streams) < self._limit
            and not self._transport.is_closing()
        )

    def open(self, stream: Stream, headers: Headers) -> None:
        """Have a request sent with the next `flush`; there must be room for it.

        If it turns out that there is none, it waits in its origin.
        """
        if self._times is not None:
            connect_us, tls_us = self._times
            self._times = None
            stream.tally.record_connection(connect_us, tls_us)
        try:
            self._session.open(stream, headers)
        except SessionClosedError:
            self.origin.waiting.append(stream)
            self.retire()

    def reset(self, stream: Stream) -> None:
        """Give up a request that is in flight; the next `flush` sends the reset."""
        self._session.reset(stream)

    def flush(self) -> None:
        """Send what there is to be sent."""
        session = self._session
        if self._is_closed:
            return
        if not session.fault:
            if not self._is_paused and (data := session.take_bytes(PIECE_BYTES)):
                self._write(data)
                # A server may allow many long bodies as a whole: all would be in memory a second time.
                if len(data) == PIECE_BYTES and not self._is_paused:
                    self._schedule_flush()
            # Malformed answers end once their reset is sent, and requests that are too long end here.
            if ended := session.settle(monotonic_ns()):
                for stream in ended:
                    self._finish(stream, monotonic_ns())
                self._owner.refill_soon(self)
        if session.fault or (self.is_retired and not session.streams):
            self._lose(session.fault or HUNG_UP)

    def _schedule_flush(self) -> None:
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_flush)

    def _run_flush(self) -> None:
        self._is_flush_scheduled = False
        self.flush()

    def retire(self) -> None:
        """Take no further request; close when the last one has ended."""
        self.is_retired = True
        self._owner.update_room(self)

    def close(self) -> None:
        """End the connection at once; the caller has accounted for its requests in flight."""
        if self._is_closed:
            return
        self._is_closed = True
        self._session.streams.clear()
        if self._is_made:
            if self._file != NO_FILE and (data := self._session.take_last_bytes()):
                self._write(data)
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected, TLS included; the server must send its settings before the first request."""
        self._transport = transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        if self._is_closed:
            transport.abort()
            return
        self._is_made = True
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            self._file = transport.get_extra_info("socket").fileno()
        elif tls.selected_alpn_protocol() != ALPN:
            self._lose(NO_HTTP2)
            return
        self._times = self.measure()
        self.flush()

    def data_received(self, data: bytes) -> None:
        """A piece of answers arrived, mostly several whole ones."""
        if self._is_closed:
            return
        self.heard_ns = now_ns = monotonic_ns()
        session, owner = self._session, self._owner
        ended = session.receive(data, now_ns)
        if session.has_news:
            self._apply_session()
        build = owner.build
        if build is None or self.is_retired or owner.free < 0 or self.origin.waiting:
            has_failed = False
            for stream in ended:
                has_failed = self._finish(stream, now_ns) or has_failed
        else:
            has_failed = self._replace_all(ended, now_ns, build)
        if has_failed:
            owner.refill(self)
        self.flush()

    def _replace_all(  # noqa: C901  # a call for each part would take as long
        self, ended: list[Stream], now_ns: int, build: BuildHeaders
    ) -> bool:
        """Count requests that have ended, and put the next one in the place of each that was answered.

        As `_finish`, `Owner.go_on`, `Feed.pop` and `Session.open`, whose calls would take a third of the
        time of a request.

        Args:
            ended: the requests.
            now_ns: when they have ended.
            build: makes the headers of request `i`; nothing else is needed to send it.

        Returns:
            Whether any ended without an answer.
        """
        feed, session, limit = self._feed, self._session, self._limit
        streams, send_request = session.streams, session.send_request
        has_failed, left_to_owner = False, 0
        tally: Tally | None = None
        status, received, latencies_us = 0, 0, list[int]()
        for stream in ended:
            route = stream.route
            latency_ns = now_ns - stream.since_ns
            if (
                stream.is_odd
                or (found := route.ok_statuses.get(stream.headers[0][1])) is None
                or latency_ns > route.ok_ns
            ):
                has_failed = self._finish(stream, now_ns) or has_failed
                continue
            if stream.tally is not tally or found != status:
                if tally is not None:
                    count_answers(tally, status, latencies_us, received)
                tally, status, received, latencies_us = stream.tally, found, 0, []
            if stream.first_ns != now_ns:
                tally.record_split(latency_ns // 1000, (stream.first_ns - stream.since_ns) // 1000)
            latencies_us.append(latency_ns // 1000)
            received += stream.received
            following = feed.current
            if (
                following is None
                or len(streams) >= limit
                or not (headers := build(following.next_coordinate))
            ):
                left_to_owner += 1
                continue
            stream.coordinate = stream.index = index = following.next_coordinate
            stream.tally = following.tally
            stream.received = 0
            stream.since_ns = now_ns
            following.next_coordinate = index + 1
            if following.next_coordinate == following.stop:
                feed.advance()
            try:
                stream.number = number = send_request(headers, end_stream=True)
            except SessionClosedError:
                self.origin.waiting.append(stream)
                self.retire()
                limit, has_failed = 0, True
            else:
                streams[number] = stream
        if tally is not None:
            count_answers(tally, status, latencies_us, received)
        for _ in range(left_to_owner):
            self._owner.go_on(self)
        return has_failed

    def pause_writing(self) -> None:
        """The server has stopped reading."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The server reads again."""
        self._is_paused = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._file = NO_FILE  # another connection may have its number now
        if not self._is_closed:
            self._lose(self._find_end(exc))
        self._owner.forget(self)

    def _apply_session(self) -> None:
        """Apply changed settings of the server."""
        session = self._session
        session.has_news = False
        limit = min(self._most_streams, session.most_streams)
        if session.is_ready and (limit != self._limit or not self.is_ready):
            self.origin.record_limit(limit, self._most_streams)
        self._limit = limit
        if session.is_draining and not self.is_retired:
            self.retire()
        if session.is_ready and not self.is_ready:
            self.is_ready = True
            self.since_ns = self.heard_ns
            self._owner.on_ready(self)
        else:
            self._owner.refill(self)

    def _finish(self, stream: Stream, now_ns: int) -> bool:
        """Account for a request off the hot path; returns whether it ended without an answer."""
        if stream.is_refused:
            self._owner.take_back(self, stream)
            return True
        if stream.outcome != OK:
            self._owner.fail(stream, stream.outcome, stream.reason)
            return True
        latency_ns = now_ns - stream.since_ns
        parsed = stream.route.judge(stream)
        if latency_ns > stream.route.ok_ns:
            parsed = self._owner.limit.judge(parsed, latency_ns)
        if stream.first_ns != now_ns and parsed[0] != TIMEOUT:
            stream.tally.record_split(latency_ns // 1000, (stream.first_ns - stream.since_ns) // 1000)
        try:
            count_answer(stream.tally, stream.coordinate, parsed, latency_ns, stream.lateness_us)
        except Exception as error:  # noqa: BLE001  # `abandon` reports it
            abandon(stream.tally, error)
        self._owner.go_on(self)
        return False

    def _lose(self, error: object) -> None:
        """Close a connection that is of no further use, and fail its requests in flight."""
        session = self._session
        lost = list(session.streams.values())
        is_fault = bool(session.fault)
        self.close()
        for stream in lost:
            cause = CUT_SHORT if error is HUNG_UP and stream.first_ns else error
            self._owner.fail(stream, PROTOCOL_ERROR if is_fault else DISCONNECTED, cause)
        self._owner.lose(self, error)

    def _find_end(self, error: Exception | None) -> object:
        """Why the server has ended the connection.

        A server that hangs up in clear text without a frame of HTTP/2 on any connection does not speak it.
        """
        if farewell := self._session.farewell:
            return error or farewell
        has_spoken = self.is_ready or self.origin.most_streams
        has_agreed = self._transport.get_extra_info("ssl_object") is not None
        return (error or HUNG_UP) if has_spoken or has_agreed else NO_HTTP2

    def _write(self, data: bytes) -> None:
        """Send at once what the socket takes; the transport would first serve all other connections."""
        sent = 0
        if self._file != NO_FILE and not self._transport.is_closing():
            try:  # noqa: SIM105  # `suppress` takes longer than all else here
                sent = write(self._file, data)
            except OSError:  # the transport will meet it, too, and report it
                pass
        if sent < len(data):
            self._file = NO_FILE  # later bytes must not overtake the rest
            self._transport.write(data[sent:])
