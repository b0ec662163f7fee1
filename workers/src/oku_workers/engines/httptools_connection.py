"""One connection of the httptools engine: request, response, next request.

This is the hot path of the engine. A response that is the same, byte for byte, as one that was parsed before
is not parsed again: what the parser makes of a whole response depends on its bytes alone. All others go
through the parser of httptools (llhttp), which is made when it is needed first.
"""

import asyncio
import os
import re
from time import perf_counter_ns
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from oku_workers.engines.httptools_known import KnownResponses, Parsed
from oku_workers.engines.httptools_origin import Origin
from oku_workers.hand import DISCONNECTED, PROTOCOL_ERROR, TIMEOUT, Hand

LONGEST_HEAD_BYTES = 65_536
"""Status line and headers of a response, and of all interim ones before it; more is a protocol error."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they come: this only ends what no honest server sends."""

LARGE_REQUEST_BYTES = 16_384
"""A longer request may not be out when it is answered; shorter ones are, unless the socket was full."""

_CONNECTING, _IDLE, _SENDING, _SENT, _READING, _CLOSED = range(6)
_NO_FILE = -1
_FIRST_FINAL_STATUS = 200
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (101, 204, 304)

# As the parser reads them: a space before the colon, and values over several lines.
_HAS_LENGTH = re.compile(
    rb"\r\n(?:content-length *:|transfer-encoding *:(?:[^\r]|\r\n[ \t])*\bchunked\b)", re.IGNORECASE
)
_SAYS_CLOSE = re.compile(rb"\AHTTP/1\.0|\r\nconnection *:(?:[^\r]|\r\n[ \t])*\bclose\b", re.IGNORECASE)


class Owner(Protocol):
    """What a connection knows of the engine that it belongs to.

    Attributes:
        limit_ns: longest time of a request.
        expected: the statuses that count as ok.
        has_bodies: whether responses have bodies; those to HEAD have none.
        known: the responses that need no parsing.
    """

    limit_ns: int
    expected: frozenset[int]
    has_bodies: bool
    known: KnownResponses

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
        """Nothing will come of a connection any more."""
        ...


class Connection(asyncio.Protocol):
    """See the module.

    Attributes:
        origin: where it goes.
        hand: the lease that the request in flight is from; None without one.
        index: of that request.
        since_ns: when that request was sent (connecting included), or when the connection became idle.
    """

    __slots__ = (
        "_ends_by_close",
        "_file",
        "_find_known",
        "_has_head",
        "_head",
        "_head_from",
        "_is_complete",
        "_is_kept",
        "_owner",
        "_parser",
        "_received",
        "_state",
        "_status",
        "_transport",
        "hand",
        "index",
        "origin",
        "since_ns",
    )

    _transport: asyncio.Transport
    _has_head: bool
    _is_complete: bool
    _is_kept: bool
    _ends_by_close: bool
    _head: bytes
    _head_from: int
    _received: int

    def __init__(self, owner: Owner, origin: Origin, hand: Hand, index: int, request: bytes) -> None:
        """A connection that is still to be made, for the first request on it."""
        self.origin = origin
        self.hand: Hand | None = hand
        self.index = index
        self.since_ns = perf_counter_ns()
        self._owner = owner
        self._find_known = owner.known.find
        self._file = _NO_FILE
        self._state = _CONNECTING
        self._parser: HttpResponseParser | None = None
        self._status = 0
        self._forget_response()
        self._head = request  # it has to be kept somewhere until it can be sent

    def send(self, hand: Hand, index: int, request: bytes, now_ns: int) -> None:
        """Send a request; there is none in flight."""
        self.hand = hand
        self.index = index
        self.since_ns = now_ns
        self._state = _SENT
        self._write(request)

    def rest(self, now_ns: int) -> None:
        """There is no request for it now."""
        self.hand = None
        self.since_ns = now_ns
        self._state = _IDLE

    def close(self) -> None:
        """End the connection at once; the caller has accounted for what is in flight on it."""
        if self._state not in (_CONNECTING, _CLOSED):
            self._transport.abort()
        self._state = _CLOSED
        self.hand = None
        self._parser = None  # it refers to this connection

    @property
    def is_usable(self) -> bool:
        """Whether it is idle and the server has not hung up."""
        return self._state == _IDLE and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected, TLS included: the first request can be sent."""
        transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own
        if self._state == _CLOSED:
            transport.abort()
            return
        self._transport = transport
        if transport.get_extra_info("ssl_object") is None:
            self._file = transport.get_extra_info("socket").fileno()
        self._state = _SENT
        request, self._head = self._head, b""
        self._write(request)

    def data_received(self, data: bytes) -> None:
        """A piece of a response came, mostly the whole of it."""
        if self._state == _SENT and (known := self._find_known(data)) is not None:
            now_ns = perf_counter_ns()
            hand, latency_ns = self.hand, now_ns - self.since_ns
            self._owner.go_on(self, now_ns)
            self._count(hand, known, latency_ns)
        else:
            self._read(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        if self._has_head and self._ends_by_close and exc is None and self.hand is not None:
            self._finish()
        elif self._state != _CLOSED:
            self._owner.lose(self, DISCONNECTED, exc or "the server hung up")
        self._owner.forget(self)

    def on_message_begin(self) -> None:
        """The parser: a response begins."""
        if self._is_complete:  # nobody asked for this one
            self._is_kept = False

    def on_headers_complete(self) -> None:
        """The parser: the head of a response is complete."""
        if self._is_complete:  # of a response that nobody asked for
            return
        assert self._parser is not None
        self._status = status = self._parser.get_status_code()
        self._has_head = True
        if len(self._head) > LONGEST_HEAD_BYTES and len(self._cut_head()) > LONGEST_HEAD_BYTES:
            raise ValueError(f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
        if status < _FIRST_FINAL_STATUS and status != _SWITCHING_PROTOCOLS:
            return
        has_body = self._owner.has_bodies
        if not self._parser.should_keep_alive():
            head = self._cut_head()
            self._is_kept = not has_body and not _SAYS_CLOSE.search(head)
            self._ends_by_close = has_body and status not in _WITHOUT_BODY and not _HAS_LENGTH.search(head)
        if not has_body:
            self._is_complete = True

    def on_body(self, body: bytes) -> None:
        """The parser: a piece of a body."""
        if self._is_complete:
            self._is_kept = False
        else:
            self._received += len(body)

    def on_message_complete(self) -> None:
        """The parser: a response is complete."""
        if self._status >= _FIRST_FINAL_STATUS:
            self._is_complete = True
        elif self._status == _SWITCHING_PROTOCOLS:
            self._is_complete, self._is_kept = True, False
        else:  # an interim response; the one that counts is still to come
            self._has_head = False
            self._head_from = self._head.find(b"\r\n\r\n", self._head_from) + 4

    def _write(self, request: bytes) -> None:
        """Send at once what the socket takes; the transport would first deal with all that came elsewhere."""
        sent = 0
        if self._file != _NO_FILE:
            try:  # noqa: SIM105  # `suppress` takes longer than all else here
                sent = os.write(self._file, request)
            except OSError:  # the transport will find out and tell
                pass
        if sent < len(request):
            self._file = _NO_FILE  # what follows must not overtake the rest
            self._transport.write(request[sent:])
            if sent or len(request) > LARGE_REQUEST_BYTES:
                self._state = _SENDING

    def _read(self, data: bytes) -> None:
        if self.hand is None:
            if self._state != _CLOSED:  # nobody has asked for anything
                self._owner.lose(self, PROTOCOL_ERROR, "an answer without a request")
            return
        is_whole = self._state == _SENT
        self._state = _READING
        if not self._has_head:
            self._head = (self._head + data).lstrip(b"\r\n")  # the parser takes no notice of these either
        try:
            self._get_parser().feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._is_kept = False
            if not self._is_complete:
                self._owner.lose(self, PROTOCOL_ERROR, error.__context__ or error)
                return
        if self._is_complete:
            if is_whole and self._is_kept:
                self._owner.known.add(data, self._build_parsed())
            self._finish()
        elif not self._has_head and len(self._head) > LONGEST_HEAD_BYTES:
            self._owner.lose(self, PROTOCOL_ERROR, f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
        elif self._received > LARGEST_BODY_BYTES:
            self._owner.lose(self, PROTOCOL_ERROR, f"its body is longer than {LARGEST_BODY_BYTES} bytes")

    def _finish(self) -> None:
        """A response that was parsed is complete."""
        now_ns = perf_counter_ns()
        hand, latency_ns = self.hand, now_ns - self.since_ns
        # Who answers before the request is out need not read the rest, and what follows would wait for it.
        is_kept = self._is_kept and not self._transport.get_write_buffer_size()
        parsed = self._build_parsed()
        self._forget_response()
        if is_kept:
            self._owner.go_on(self, now_ns)
        else:
            self._owner.release(self)
        self._count(hand, parsed, latency_ns)

    def _build_parsed(self) -> Parsed:
        return self._status, self._received, self._status in self._owner.expected

    def _count(self, hand: Hand | None, parsed: Parsed, latency_ns: int) -> None:
        assert hand is not None
        try:
            if latency_ns > self._owner.limit_ns:
                hand.fail(TIMEOUT)
            else:
                status, received, is_expected = parsed
                hand.answer(status, latency_ns // 1000, received, expected=is_expected)
        except Exception as error:  # a fault of our own, and the lease must not hang then
            hand.abandon(error)
            raise

    def _get_parser(self) -> HttpResponseParser:
        if self._parser is None:
            self._parser = HttpResponseParser(self)
            # Values with control characters come from servers that people use; browsers take them.
            self._parser.set_dangerous_leniencies(lenient_headers=True)
        return self._parser

    def _cut_head(self) -> bytes:
        return self._head[self._head_from : self._head.find(b"\r\n\r\n", self._head_from)]

    def _forget_response(self) -> None:
        self._has_head = self._is_complete = self._ends_by_close = False
        self._is_kept = True
        self._head = b""
        self._head_from = 0
        self._received = 0
        if not self._owner.has_bodies:
            self._parser = None  # it waits for the body that was announced
