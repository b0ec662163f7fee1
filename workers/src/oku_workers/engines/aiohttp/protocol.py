"""The connections of the aiohttp engine: aiohttp's own, with the reader of responses that all engines share.

aiohttp asks through `set_response_params` for the next response, and gets the head as a message and the body
as a stream that holds nothing: bodies are counted and dropped as they arrive.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from time import monotonic_ns
from typing import Any

from aiohttp import ClientConnectionError, ClientResponse, HttpVersion11, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from multidict import CIMultiDict, CIMultiDictProxy

from oku_core.http_client.error_reason import CUT_SHORT, ReasonError
from oku_core.http_client.http1_connection import read_rest
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader

_BUFFER_BYTES = 65_536
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


FindNeeds = Callable[[], tuple[int, bool]]
"""Returns, in the task of a request, how many bytes of its response's body checks need, and whether the
connection is for this request alone."""


class AnswerBody(StreamReader):
    """The body of a response, which holds nothing but what checks look at.

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


class ResponseProtocol(ResponseHandler):
    """One connection.

    Args:
        loop: the event loop that it belongs to.
        find_needs: None if no request needs anything.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, find_needs: FindNeeds | None = None) -> None:
        super().__init__(loop=loop)
        self._find_needs = find_needs
        self._reader: ResponseReader | None = None
        self._is_asked = False
        self._body: AnswerBody | None = None
        self._early = b""
        self._first_ns = 0

    def set_response_params(self, *, skip_payload: bool = False, **_: Any) -> None:
        """A request is about to be sent; its response will be the next to arrive."""
        reader = self._reader
        if reader is None or reader.has_bodies is skip_payload:
            reader = self._reader = ResponseReader(has_bodies=not skip_payload)
        if self._find_needs is not None:
            reader.kept_bytes, self._should_close = self._find_needs()
        reader.reset()
        self._is_asked, self._body, self._first_ns = True, None, 0
        if self._early:  # not at once: the request is to be written before its response can fail
            self._loop.call_soon(self._read_early)

    def data_received(self, data: bytes) -> None:
        """A piece of a response arrived, or something that nobody asked for."""
        reader, transport = self._reader, self.transport
        if reader is None:  # the first request is about to be sent
            self._early += data
            if transport is not None:
                transport.pause_reading()
            return
        if not self._is_asked:
            self._give_up()
            return
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            self._fail(error)
            return
        if not (reader.is_complete or self._first_ns):
            self._first_ns = monotonic_ns()
        if reader.has_head and self._body is None:
            self._begin(reader)
        if reader.is_complete:
            self._finish(reader)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, and with it a body that has no other end."""
        if self._is_asked and self.transport and (rest := read_rest(self.transport, exc)):
            self.data_received(rest)
        reader, body = self._reader, self._body
        if self._is_asked and reader is not None and reader.has_begun:
            if body is not None and exc is None and reader.ends_by_close:
                self._finish(reader)
            else:
                error = ClientConnectionError()
                error.__cause__ = exc or ReasonError(CUT_SHORT)
                (body or self).set_exception(error)
        if reader is not None:
            reader.end()
        self._is_asked = False
        super().connection_lost(exc)
        self._body = None  # it refers to this protocol: a cycle that only the garbage collector would free

    def _read_early(self) -> None:
        early, self._early = self._early, b""
        self.data_received(early)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _begin(self, reader: ResponseReader) -> None:
        """The head of a response is complete; its request gets it, and waits for the body."""
        self._body = self._payload = body = AnswerBody(self, _BUFFER_BYTES, loop=self._loop)
        body.head = reader.head
        self.feed_data((_build_message(reader.status), body))

    def _finish(self, reader: ResponseReader) -> None:
        """The response is complete, and so is its body."""
        body = self._body
        assert body is not None
        self._is_asked = False
        if not reader.is_kept:
            self._should_close = True
        body.total_bytes, body.kept, body.first_ns = reader.received, reader.body, self._first_ns
        body.feed_eof()

    def _fail(self, error: MalformedResponseError) -> None:
        """No response can come of it."""
        self._is_asked = False
        error.__traceback__ = error.__cause__ = error.__context__ = None  # they hold what was read
        (self if self._body is None else self._body).set_exception(error)
        self._give_up()

    def _give_up(self) -> None:
        """Take nothing more from this connection."""
        self._should_close = True
        if self.transport is not None:
            self.transport.abort()


@lru_cache(1000)
def _build_message(status: int) -> RawResponseMessage:
    return RawResponseMessage(
        version=HttpVersion11,
        code=status,
        reason="",
        headers=_NO_HEADERS,
        raw_headers=(),
        should_close=False,
        compression=None,
        upgrade=False,
        chunked=False,
    )
