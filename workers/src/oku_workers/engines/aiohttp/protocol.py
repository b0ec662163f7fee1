"""The connections of the aiohttp engine: aiohttp's own, with the reader of responses that all engines share.

aiohttp asks through `set_response_params` for the next response, and gets the head as a message and the body
as a stream that holds nothing: bodies are counted and dropped as they arrive.
"""

import asyncio
from functools import lru_cache
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientConnectionError, ClientResponse, HttpVersion11, StreamReader
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict, CIMultiDictProxy

from oku_core.http_client.connector import OriginConnection
from oku_core.http_client.error_reason import CUT_SHORT, ReasonError
from oku_core.http_client.http1_connection import PIECE_BYTES, read_rest
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader
from oku_workers.engines.aiohttp.slot import CURRENT_SLOT

_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


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


def get_body(response: ClientResponse) -> AnswerBody:
    """The body of a response; its connection has made it."""
    return response.content  # type: ignore[return-value]


class ResponseProtocol(ResponseHandler, OriginConnection):
    """One connection, which belongs to an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        ResponseHandler.__init__(self, loop)
        OriginConnection.__init__(self)
        self._reader = ResponseReader(has_bodies=True)
        self._is_fresh, self._is_asked = True, False
        self._body: AnswerBody | None = None
        self._early = b""
        self._first_ns = 0

    def set_response_params(self, *, skip_payload: bool = False, **_: Any) -> None:
        """A request is about to be sent; its response will be the next to arrive."""
        reader = self._reader
        reader.has_bodies = not skip_payload
        reader.kept_bytes, self._should_close = CURRENT_SLOT.get().route.needs
        reader.reset()
        self._is_fresh, self._is_asked, self._body, self._first_ns = False, True, None, 0
        if self._early:  # not at once: the request is to be written before its response can fail
            self._loop.call_soon(self._read_early)

    def data_received(self, data: bytes) -> None:
        """A piece of a response arrived, or bytes that no request has asked for."""
        reader = self._reader
        if self._is_fresh:  # the first request is about to be sent
            self._early += data
            if self.transport is not None:
                self.transport.pause_reading()
            return
        if not self._is_asked:
            self._fail(ClientConnectionError())
            return
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            self._fail(error.without_response())
            return
        if not (reader.is_complete or self._first_ns):
            self._first_ns = monotonic_ns()
        if reader.has_head and self._body is None:
            self._body = self._payload = body = AnswerBody(self, PIECE_BYTES, loop=self._loop)
            body.head = reader.head
            self.feed_data((_build_message(reader.status), body))
        if reader.is_complete:
            self._finish(reader)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, and with it a body that has no other end."""
        reader = self._reader
        if self._is_asked and self.transport and (rest := read_rest(self.transport, exc)):
            self.data_received(rest)
        if self._is_asked and exc is None and reader.ends_by_close:
            self._finish(reader)
        elif self._is_asked and reader.has_begun:
            error = ClientConnectionError()
            error.__cause__ = exc or ReasonError(CUT_SHORT)
            self._fail(error)
        reader.end()
        self._is_asked = False
        super().connection_lost(exc)
        self._body = None  # it refers to this protocol: a cycle that only the garbage collector would free

    def _read_early(self) -> None:
        early, self._early = self._early, b""
        self.data_received(early)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _finish(self, reader: ResponseReader) -> None:
        """The response is complete, and so is its body."""
        body = self._body
        assert body is not None
        self._is_asked = False
        if not reader.is_kept:
            self._should_close = True
        body.total_bytes, body.kept, body.first_ns = reader.received, reader.body, self._first_ns
        self._body = None
        body.feed_eof()

    def _fail(self, error: Exception) -> None:
        """Give up the connection, and the response that is under way."""
        self._is_asked = False
        (self if self._body is None else self._body).set_exception(error)
        self._should_close = True
        if self.transport is not None:
            self.transport.abort()


@lru_cache(1000)
def _build_message(status: int) -> Any:
    """What `ClientResponse` reads of a head."""
    return SimpleNamespace(version=HttpVersion11, code=status, reason="", headers=_NO_HEADERS, raw_headers=())
