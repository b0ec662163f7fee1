"""The connections of the aiohttp engine: aiohttp's own, with the reader of responses that all engines share.

aiohttp asks through `set_response_params` for the next response, and gets the head as a message and the body
as a stream that holds nothing: bodies are counted and dropped as they arrive.
"""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

from aiohttp import HttpVersion11, StreamReader
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict, CIMultiDictProxy

from oku_core.accounting.outcome import PROTOCOL_ERROR
from oku_core.http_client.connector import OriginConnection
from oku_core.http_client.error_reason import UNASKED
from oku_core.http_client.http1_connection import PIECE_BYTES, ResponseReceiver, TransportError, read_rest
from oku_core.http_client.response_reader import ResponseReader
from oku_workers.engines.aiohttp.route import Route
from oku_workers.executions.tally import Tally
from oku_workers.feed.feed_protocol import FeedProtocol

_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


@dataclass(slots=True, eq=False)
class Slot:
    """Sends one request after another; its connections find it by its task.

    Attributes:
        task: sends it.
        route: what kind of request it is.
        tally: counts it; None without a request in flight.
        coordinate: its place in the ledger.
        sent_ns: when it was sent.
        lateness_us: how long after its due time that was.
    """

    task: asyncio.Task[None] = field(init=False)
    route: Route = field(init=False)
    tally: Tally | None = None
    coordinate: int = 0
    sent_ns: int = 0
    lateness_us: int = 0

    def take(self, feed: FeedProtocol) -> int:
        """Take the next request of a feed, and return its index; it is in flight from now on."""
        self.tally, self.coordinate, index, due_ns = feed.pop()
        self.sent_ns = now_ns = monotonic_ns()
        self.lateness_us = (now_ns - due_ns) // 1000 if due_ns else 0
        return index


CURRENT_SLOT: ContextVar[Slot] = ContextVar("slot")
"""The slot whose task this is."""


class AnswerBody(StreamReader):
    """The body of a response, of which only the part that checks need is kept.

    Attributes:
        head: status line and headers of the response.
        kept: the body as it was sent, as far as it is kept.
        first_ns: when the first piece of the response came; 0 if it came as a whole.
    """

    head: bytes = b""
    kept: bytes | bytearray = b""
    first_ns: int = 0


class ResponseProtocol(ResponseHandler, OriginConnection, ResponseReceiver):
    """One connection, which belongs to an event loop; to a proxy that forwards plain requests, or another."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, is_forwarded: bool = False) -> None:
        ResponseHandler.__init__(self, loop)
        OriginConnection.__init__(self)
        self._is_forwarded = is_forwarded
        self._reader = ResponseReader(has_bodies=True)
        self._is_fresh, self._is_asked = True, False
        self._body: AnswerBody | None = None
        self._first_ns = 0

    def set_response_params(self, *, skip_payload: bool = False, **_: Any) -> None:
        """A request is about to be sent; its response will be the next to arrive."""
        reader = self._reader
        reader.has_bodies = not skip_payload
        reader.kept_bytes, self._should_close = CURRENT_SLOT.get().route.needs
        reader.reset()
        self._is_fresh, self._is_asked, self._body, self._first_ns = False, True, None, 0
        if self._tail:  # not at once: the request is to be written before its response can fail
            self._loop.call_soon(self._drain_tail)

    def data_received(self, data: bytes) -> None:
        """A piece of a response arrived, or bytes that no request has asked for."""
        if self._is_fresh or self._tail:  # the first request is about to be sent
            super().data_received(data)
            return
        if not self._is_asked:
            self._fail(PROTOCOL_ERROR, UNASKED)
            return
        reader = self._reader
        is_complete = self._read_piece(reader, data)
        if not (is_complete or self._first_ns):
            self._first_ns = monotonic_ns()
        if self.exception() is None and reader.has_head and self._body is None:
            self._body = self._payload = body = AnswerBody(self, PIECE_BYTES, loop=self._loop)
            body.head = reader.head
            self.feed_data((_build_message(reader.status), body))
        if is_complete:
            self._finish(reader)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, and with it a body that has no other end."""
        if self._is_asked and self.transport and (rest := read_rest(self.transport, exc)):
            self.data_received(rest)
        if self._is_asked and self._end_response(self._reader, exc):
            self._finish(self._reader)
        self._reader.end()
        super().connection_lost(exc)
        self._body = None  # it refers to this protocol: a cycle that only the garbage collector would free

    def _finish(self, reader: ResponseReader) -> None:
        """The response is complete, and so is its body."""
        body = self._body
        assert body is not None
        self._is_asked = False
        self._should_close |= not reader.is_kept
        body.total_bytes, body.kept, body.first_ns = reader.received, reader.body, self._first_ns
        self._body = None
        body.feed_eof()

    def _fail(self, outcome: int, cause: object) -> None:
        self._is_asked = False
        (self if self._body is None else self._body).set_exception(TransportError(outcome, cause))
        if self.transport is not None:
            self.transport.abort()


@lru_cache(1000)
def _build_message(status: int) -> Any:
    """What `ClientResponse` reads of a head."""
    return SimpleNamespace(version=HttpVersion11, code=status, reason="", headers=_NO_HEADERS, raw_headers=())
