"""The connections of the aiohttp engine: aiohttp's own, with the reader of responses that all engines share.

aiohttp asks through `set_response_params` for the next response, and gets the head as a message and the body
as a stream that holds nothing: bodies are counted and dropped as they arrive. aiohttp's own parser would
judge otherwise than that of the httptools engine, and would keep each interim response until somebody reads
it.
"""

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from aiohttp import ClientConnectionError, HttpVersion11, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict, CIMultiDictProxy

from oku_core.http_client.client_rules import LONGEST_HEAD_BYTES
from oku_core.http_client.error_reason import CUT_SHORT, ReasonError
from oku_core.http_client.response_reader import MalformedResponseError, ResponseReader

_CONTINUE = 100
_BUFFER_BYTES = 65_536
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


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


class ResponseProtocol(ResponseHandler):
    """One connection.

    Args:
        loop: the event loop that it belongs to.
        find_kept_bytes: says, in the task of a request, how much of the body of its response is kept for
            checks; None if nothing ever is.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        find_kept_bytes: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(loop=loop)
        self._find_kept_bytes = find_kept_bytes
        self._reader: ResponseReader | None = None
        self._is_asked = False
        self._is_continued = False
        self._body: AnswerBody | None = None
        self._early = b""
        self._first_ns = 0

    def set_response_params(self, *, skip_payload: bool = False, **_: Any) -> None:
        """A request is about to be sent; its response will be the next to arrive."""
        reader = self._reader
        if reader is None or reader.has_bodies is skip_payload:
            reader = self._reader = ResponseReader(has_bodies=not skip_payload)
        if self._find_kept_bytes is not None:
            reader.kept_bytes = self._find_kept_bytes()
        reader.begin()
        self._is_asked, self._is_continued, self._body, self._first_ns = True, False, None, 0
        if self._early:  # not at once: the request is to be written before its response can fail
            self._loop.call_soon(self._read_early)

    def data_received(self, data: bytes) -> None:
        """A piece of a response arrived, or something that nobody asked for."""
        reader = self._reader
        # Before the first request, or from a proxy that was asked for a tunnel: aiohttp waits for it later.
        if reader is None or self._early:
            self._keep_early(data)
            return
        if not self._is_asked:
            self._give_up()
            return
        try:
            reader.feed(data)
        except MalformedResponseError as error:
            self._fail(error)
            return
        if not reader.is_complete and not self._first_ns:
            self._first_ns = monotonic_ns()
        if reader.has_continue and not self._is_continued:  # who sends the body may wait for it
            self._is_continued = True
            self.feed_data((_build_message(_CONTINUE), EMPTY_PAYLOAD))
        body = self._body
        if body is None:
            if not reader.has_head:
                return
            self._body = body = self._payload = AnswerBody(self, _BUFFER_BYTES, loop=self._loop)
            body.head = reader.head
            if reader.is_complete:
                self._finish(reader, body)
            self.feed_data((_build_message(reader.status), body))
        elif reader.is_complete:
            self._finish(reader, body)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, and with it a body that has no other end."""
        reader, body = self._reader, self._body
        if self._is_asked and reader is not None and reader.has_begun:
            if body is not None and exc is None and reader.ends_by_close:
                self._finish(reader, body)
            else:
                error = ClientConnectionError()
                error.__cause__ = exc or ReasonError(CUT_SHORT)
                (body or self).set_exception(error)
        if reader is not None:
            reader.end()
        self._is_asked = False
        super().connection_lost(exc)
        self._body = None  # it refers to this protocol: a cycle that only the garbage collector would free

    def _keep_early(self, data: bytes) -> None:
        self._early += data
        if len(self._early) > LONGEST_HEAD_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def _read_early(self) -> None:
        early, self._early = self._early, b""
        self.data_received(early)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _finish(self, reader: ResponseReader, body: AnswerBody) -> None:
        """The response is complete; whoever waits for its body may go on."""
        self._is_asked = False
        if not reader.is_kept:
            self._should_close = True
        body.total_bytes, body.kept = reader.received, reader.body
        body.first_ns = self._first_ns
        body.feed_eof()

    def _fail(self, error: MalformedResponseError) -> None:
        """No response can come of it."""
        self._is_asked = False
        error.__traceback__ = error.__cause__ = error.__context__ = None  # they hold what was read
        if self._body is None:
            self.set_exception(error)
        else:
            self._should_close = True
            self._body.set_exception(error)
        self._give_up()

    def _give_up(self) -> None:
        """Take nothing more from this connection."""
        self._should_close = True
        if self.transport is not None:
            self.transport.abort()


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
