"""HTTP/2 on one connection, without a socket; the only module that knows the package `ngh2`.

Bytes from the server go in; ended streams and bytes for the server come out. libnghttp2 does framing, header
compression and flow control, and enforces RFC 9113. Its limits and ours bound the memory that a server can
make us use.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

import ngh2
from ngh2 import DataReceived, ResponseReceived, StreamClosed
from ngh2.enums import ErrorCode, Setting

from oku_core.accounting.outcome import CONNECT_ERROR, DISCONNECTED, PROTOCOL_ERROR
from oku_core.http_client.error_reason import HEADERS_TOO_LONG, MALFORMED_ANSWER, NO_HTTP2, STREAM_REFUSED
from oku_core.http_client.http1_connection import PIECE_BYTES
from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES, MOST_HEADERS
from oku_workers.engines.nghttp2.request import Headers
from oku_workers.engines.nghttp2.route import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM_WINDOW_BYTES = 1 << 20
"""The receive window of a stream; bodies are dropped as they come, which reopens it at once."""
CONNECTION_WINDOW_BYTES = 1 << 24
"""The same for all streams of a connection together."""

_MOST_SENT_BYTES = 1 << 20
"""How long the headers of a request may be."""
_CONFIGURATION = ngh2.Configuration(
    max_inbound_header_list_size=LONGEST_HEAD_BYTES,
    max_inbound_header_count=MOST_HEADERS,
    max_send_header_block_length=_MOST_SENT_BYTES,
)
_SETTINGS = {Setting.ENABLE_PUSH: 0, Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES}
_UNLIMITED = 1 << 31


SessionClosedError = ngh2.NGH2Error
"""A connection takes no further stream: it ends, or has used up its numbers for them."""


class Session:
    """The client's side of one connection.

    Attributes:
        streams: those that have not ended, by their number.
        is_ready: whether the server has sent its settings, which come first (RFC 9113, 3.4).
        most_streams: how many it allows at a time.
        is_draining: whether it takes no further streams: after GOAWAY, or a fault, or 2^30 of them.
        has_news: whether any of this has changed; the reader resets it.
        farewell: the error that it gave as the reason for that; empty if it gave none.
        fault: why the connection cannot be used any more; empty if it can.
    """

    __slots__ = (
        "_answered",
        "_connection",
        "_list_events",
        "_receive",
        "farewell",
        "fault",
        "has_news",
        "is_draining",
        "is_ready",
        "most_streams",
        "send_request",
        "streams",
        "take_bytes",
    )

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.is_ready = self.is_draining = self.has_news = False
        self.most_streams = _UNLIMITED
        self.farewell = self.fault = ""
        self._answered: list[Stream] = []
        self._connection = connection = ngh2.Connection(ngh2.Role.CLIENT, _CONFIGURATION)
        connection.initiate_connection(_SETTINGS)
        connection.set_local_window_size(CONNECTION_WINDOW_BYTES)
        self._receive = connection.receive_data
        self.send_request = connection.send_request
        """Sends a request without a body, as `open` does, and returns the number of its stream."""
        self._list_events: Callable[[], list[ngh2.Event]] = connection.events
        self.take_bytes: Callable[[int], bytes] = connection.data_to_send
        """Returns the next bytes to send, up to a limit. `settle` must follow. Invalid after a fault."""

    def open(self, stream: Stream, headers: Headers) -> None:
        """Send a request on a new stream; the server must allow another one.

        Args:
            stream: gets the number of the new stream.
            headers: of the request; its route makes the rest.

        Raises:
            SessionClosedError: it cannot be sent on this connection.
        """
        build_body = stream.route.build_body
        if build_body is None:
            number = self.send_request(headers, end_stream=True)
        else:
            number = self.send_request(headers)
            self._connection.send_data(number, build_body(stream.index), end_stream=True)
        stream.number = number
        self.streams[number] = stream

    def reset(self, stream: Stream) -> None:
        """Give up a stream that has not ended."""
        del self.streams[stream.number]
        with suppress(ngh2.NGH2Error):  # the connection is about to end, and every stream with it
            self._connection.reset_stream(stream.number, ErrorCode.CANCEL)

    def take_last_bytes(self) -> bytes:
        """The last bytes to send before the connection is closed."""
        if self.fault:
            return b""
        try:
            self._connection.terminate_connection(ErrorCode.NO_ERROR)
            return self.take_bytes(PIECE_BYTES)
        except ngh2.NGH2Error:
            return b""

    def receive(self, data: bytes, now_ns: int) -> list[Stream]:
        """Read bytes of the server; returns the streams that end with them.

        Args:
            data: bytes of the server.
            now_ns: when they came.
        """
        try:
            self._receive(data)
        except ngh2.NGH2Error as error:
            ended = self._sort_out(self._list_events(), now_ns)
            self.fault = f"not HTTP/2: {error}" if self.is_ready else NO_HTTP2
            self.is_draining = self.has_news = True
            return ended
        if not self._connection.can_send_request:
            self.is_draining = self.has_news = True
        return self._sort_out(self._list_events(), now_ns)

    def settle(self, now_ns: int) -> list[Stream]:
        """The streams that have ended with the bytes taken to send: mostly malformed answers."""
        events = self._list_events()
        return self._sort_out(events, now_ns) if events else []

    def _sort_out(self, events: list[ngh2.Event], now_ns: int) -> list[Stream]:  # noqa: C901  # see below
        """This is the hot path: most answers are three events, and a call for each would take as long."""
        streams, ended = self.streams, []
        for event in events:
            if type(event) is DataReceived:
                if (stream := streams.get(event.stream_id)) is not None:
                    stream.received += len(event.data)
                    if not stream.is_plain:
                        self._keep(stream, event)
            elif type(event) is StreamClosed:
                if (stream := streams.pop(event.stream_id, None)) is not None:
                    if event.error_code or stream.is_reset:
                        self._explain(stream, event)
                    ended.append(stream)
            elif type(event) is ResponseReceived:
                if (stream := streams.get(event.stream_id)) is not None:
                    stream.headers = event.headers
                    stream.first_ns = now_ns
                    if not stream.is_plain:
                        self._record_end(stream, event)
            else:
                self._record_event(event)
        if self._answered:
            ended += self._end_answered()
        return ended

    def _keep(self, stream: Stream, event: DataReceived) -> None:
        """Keep the part of a body that checks need."""
        stream.body += event.data[: max(0, stream.route.kept_bytes - len(stream.body))]
        self._record_end(stream, event)

    def _record_end(self, stream: Stream, event: DataReceived | ResponseReceived) -> None:
        """Record a complete answer; its request may still be going out."""
        if event.end_stream and stream.route.build_body is not None:
            self._answered.append(stream)

    def _end_answered(self) -> list[Stream]:
        """The streams whose answers are complete, although the server has not read all of the requests."""
        answered, self._answered = self._answered, []
        unread = [stream for stream in answered if stream.number in self.streams]
        for stream in unread:
            self.reset(stream)
        return unread

    def _explain(self, stream: Stream, event: StreamClosed) -> None:
        """Record why a stream has ended without a complete answer."""
        code = event.error_code
        if stream in self._answered:
            return
        stream.is_odd = True
        if event.local_error is not None and not isinstance(event.local_error, ngh2.ConnectionClosingError):
            stream.outcome, stream.reason = CONNECT_ERROR, HEADERS_TOO_LONG
        elif code == ErrorCode.REFUSED_STREAM:  # or it has not gone out before the connection was to end
            stream.is_refused = True
            stream.outcome, stream.reason = DISCONNECTED, STREAM_REFUSED
        elif stream.is_reset:
            stream.outcome, stream.reason = DISCONNECTED, f"stream reset: {_name_code(code)}"
        else:
            stream.outcome, stream.reason = PROTOCOL_ERROR, MALFORMED_ANSWER

    def _record_event(self, event: ngh2.Event) -> None:
        """Record an event that most answers do not have."""
        if isinstance(event, ngh2.StreamReset):
            if (stream := self.streams.get(event.stream_id)) is not None:
                stream.is_reset = True
        elif isinstance(event, ngh2.TrailersReceived):
            if (stream := self.streams.get(event.stream_id)) is not None:
                stream.headers += event.headers
                if stream.route.build_body:
                    self._answered.append(stream)
        else:
            self._record_connection(event)

    def _record_connection(self, event: ngh2.Event) -> None:
        """Record an event of the whole connection; most change nothing for us."""
        if isinstance(event, ngh2.SettingsReceived):
            self.is_ready = True
            self.most_streams = event.settings.get(Setting.MAX_CONCURRENT_STREAMS, self.most_streams)
        elif isinstance(event, ngh2.GoAwayReceived):
            self.is_draining = True
            if event.error_code:
                self.farewell = f"the server hung up: {_name_code(event.error_code)}"
        elif isinstance(event, ngh2.ConnectionClosed):
            self.is_draining = True
            # Streams left on it would wait for ever. It may follow a GOAWAY with an error as well.
            if event.error_code and (self.streams or not self.farewell):
                self.fault = f"not HTTP/2: {_name_code(event.error_code)}" if self.is_ready else NO_HTTP2
        else:
            return
        self.has_news = True


def _name_code(code: int) -> str:
    """An error code as RFC 9113 names it, section 7."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return "unknown code"
