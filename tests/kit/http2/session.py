"""One connection as a well-behaved server knows it: bytes of the client go in, whole requests come out.

It opens no socket. It keeps the rules of RFC 9113 itself, and writes down where the client does not.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hpack import Decoder, HPACKError
from tests.kit.http2.frames import (
    ACK,
    FRAME_BYTES,
    WINDOW,
    ErrorCode,
    Fields,
    Frame,
    FrameReader,
    Kind,
    Setting,
    build_data,
    build_goaway,
    build_headers,
    build_ping,
    build_reset,
    build_settings,
    build_settings_ack,
    build_window_update,
)
from tests.kit.servers.hostile_server import Request

_LONGEST_HEAD = 1 << 24
_TABLE_BYTES = 4096
_LEFT = b"leaving."


@dataclass(frozen=True)
class StreamRequest(Request):
    """One request as it came; `Host` is among its headers as it would be in HTTP/1.1.

    Attributes:
        stream: which it came on.
        fields: all that it was sent with, pseudo-header fields too, in their order.
    """

    stream: int
    fields: list[tuple[str, str]]


@dataclass
class Stream:
    """What is known of a stream.

    Attributes:
        body: what has come.
        send_window: how many bytes may be sent.
        receive_window: how many bytes the client may send.
        is_heard: whether the client has sent all.
        is_answered: whether the server has.
        reset: why the client has given it up; None if it has not.
    """

    fields: list[tuple[str, str]]
    send_window: int
    receive_window: int
    body: bytearray = field(default_factory=bytearray)
    is_heard: bool = False
    is_answered: bool = False
    reset: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it counts towards the limit of streams."""
        return self.reset is None and not (self.is_heard and self.is_answered)


class Session:
    """The server's side of one connection.

    Args:
        write: sends bytes.
        settings: what it says first.
        hears_early: whether a request is given before its body, which is not in it then.
        grants: whether what was read makes room for as much again.

    Attributes:
        faults: what the client did that it must not, or need not: it waits for the settings of the server.
        streams: all that the client has opened.
        open_streams: those of them that are open.
        frames: what the client sent beside DATA, in its order.
        most_open: the most streams that were open at the same time.
        client: the settings of the client.
        moved: set as often as there is more room to send, or a stream has ended.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        settings: Mapping[int, int] | None = None,
        *,
        hears_early: bool = False,
        grants: bool = True,
    ) -> None:
        self.send = write
        self.faults: list[str] = []
        self.streams: dict[int, Stream] = {}
        self.open_streams: set[int] = set()
        self.frames: list[Frame] = []
        self.most_open = 0
        self.client: dict[int, int] = {}
        self._has_client = False
        self.moved = asyncio.Event()
        self.grants = grants
        self._hears_early = hears_early
        self._first = dict(settings or {})
        self._unconfirmed: deque[dict[int, int]] = deque()
        self._confirmed: dict[int, int] = {}
        self._send_window = self._receive_window = WINDOW
        self._is_known = self._is_left = False
        self._last_stream = 0
        self._taken_up_to: int | None = None
        self._block: tuple[Frame, bytes] | None = None
        self._reader = FrameReader()
        self._decoder = Decoder(max_header_list_size=_LONGEST_HEAD)

    def begin(self) -> None:
        """Say what has to be said first."""
        self.change_settings(self._first)

    def change_settings(self, settings: Mapping[int, int]) -> None:
        """Say what holds from now on; the client is held to it once it has confirmed it."""
        self._unconfirmed.append(dict(settings))
        self.send(build_settings(settings))

    @property
    def is_confirmed(self) -> bool:
        """Whether the client has confirmed all settings."""
        return not self._unconfirmed

    def feed(self, data: bytes) -> Iterator[StreamRequest]:
        """The requests that are whole now."""
        try:
            for frame in self._reader.feed(data):
                yield from self._take(frame)
        except (ValueError, HPACKError) as error:
            self.faults.append(repr(error))

    def find_room(self, stream: int) -> int:
        """How many bytes of a body may be sent at once."""
        return max(0, min(self._send_window, self.streams[stream].send_window, FRAME_BYTES))

    def send_headers(self, stream: int, fields: Fields, *, end: bool = False) -> None:
        """Send the head of an answer, or its trailers."""
        self.send(build_headers(stream, fields, end=end))
        self.streams[stream].is_answered |= end
        self._note_over(stream)

    def send_data(self, stream: int, content: bytes = b"", *, end: bool = True) -> None:
        """Send a piece of a body, for which there must be room."""
        self._send_window -= len(content)
        self.streams[stream].send_window -= len(content)
        self.send(build_data(stream, content, end=end))
        self.streams[stream].is_answered |= end
        self._note_over(stream)

    def reset(self, stream: int, code: int = ErrorCode.CANCEL) -> None:
        """Give up a stream."""
        self.send(build_reset(stream, code))
        self._give_up(stream)

    def go_away(self, last_stream: int | None = None, code: int = ErrorCode.NO_ERROR) -> None:
        """Take no more requests than those up to a stream; by default than those that have come."""
        last_stream = self._last_stream if last_stream is None else last_stream
        self._taken_up_to = last_stream
        # Who answers the PING has read the GOAWAY before it.
        self.send(build_goaway(last_stream, code) + build_ping(_LEFT))
        for number in [number for number in self.open_streams if number > last_stream]:
            self._give_up(number)

    def grant(self, stream: int, increment: int) -> None:
        """Let the client send more: on a stream, or with 0 on all of them together."""
        self.send(build_window_update(stream, increment))
        if stream:
            self.streams[stream].receive_window += increment
        else:
            self._receive_window += increment

    def _take(self, frame: Frame) -> Iterator[StreamRequest]:
        if frame.kind != Kind.DATA:
            self.frames.append(frame)
        self._check(frame)
        match frame.kind:
            case Kind.HEADERS | Kind.CONTINUATION:
                yield from self._take_block(frame)
            case Kind.DATA:
                yield from self._take_data(frame)
                self._note_moved()
            case _:
                self._take_other(frame)
                self._note_moved()

    def _check(self, frame: Frame) -> None:
        if len(frame.payload) > FRAME_BYTES:
            self.faults.append(f"a frame of {len(frame.payload)} bytes")
        if (self._block is not None) is not (frame.kind == Kind.CONTINUATION):
            self.faults.append(f"frame {frame.kind} within a header block, or outside of one")
        if not self._has_client and frame.kind != Kind.SETTINGS:
            self.faults.append(f"frame {frame.kind} before the settings")

    def _take_block(self, frame: Frame) -> Iterator[StreamRequest]:
        """A piece of a header block, which may complete it."""
        first, block = self._block or (frame, b"")
        self._block = (first, block + frame.content)
        if not frame.ends_headers:
            return
        # Every block is decoded, or those after it could not be.
        pairs = (
            (bytes(name), bytes(value)) for name, value in self._decoder.decode(self._block[1], raw=True)
        )
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]
        self._block, number = None, first.stream
        if number in self.streams:  # trailers
            yield from self._hear(number)
            return
        self._note_opened(number, fields)
        if self._taken_up_to is not None and number > self._taken_up_to:
            self._give_up(number)  # it was on its way when the server had enough
        elif first.ends_stream or self._hears_early:
            self.streams[number].is_heard = first.ends_stream
            yield self._build_request(number)

    def _note_opened(self, number: int, fields: list[tuple[str, str]]) -> None:
        if number <= self._last_stream or number % 2 == 0:
            self.faults.append(f"stream {number} after {self._last_stream}")
        if self._is_left:
            self.faults.append(f"stream {number} after a GOAWAY")
        if not self._is_known:
            self.faults.append("a request before the server's settings were confirmed")
        self._last_stream = max(self._last_stream, number)
        initial = self._confirmed.get(Setting.INITIAL_WINDOW_SIZE, WINDOW)
        self.streams[number] = Stream(
            fields, self.client.get(Setting.INITIAL_WINDOW_SIZE, WINDOW), receive_window=initial
        )
        self.open_streams.add(number)
        now_open, limit = len(self.open_streams), self._confirmed.get(Setting.MAX_CONCURRENT_STREAMS)
        self.most_open = max(self.most_open, now_open)
        if limit is not None and now_open > limit:
            self.faults.append(f"{now_open} streams are open, {limit} may be")

    def _build_request(self, number: int) -> StreamRequest:
        stream = self.streams[number]
        pseudo = {name: value for name, value in stream.fields if name.startswith(":")}
        host = [("host", pseudo[":authority"])] if ":authority" in pseudo else []
        headers = [*host, *(pair for pair in stream.fields if not pair[0].startswith(":"))]
        return StreamRequest(
            pseudo.get(":method", ""),
            pseudo.get(":path", ""),
            headers,
            bytes(stream.body),
            number,
            stream.fields,
        )

    def _hear(self, number: int) -> Iterator[StreamRequest]:
        """The client has sent all on a stream."""
        stream = self.streams[number]
        stream.is_heard = True
        self._note_over(number)
        if not self._hears_early:
            yield self._build_request(number)

    def _take_data(self, frame: Frame) -> Iterator[StreamRequest]:
        size, stream = len(frame.payload), self.streams.get(frame.stream)
        self._receive_window -= size
        if self._receive_window < 0:
            self.faults.append("more than the window of the connection")
        if self.grants and size:
            self.grant(0, size)
        if stream is None or stream.is_heard or stream.reset is not None:
            # What was on its way when the server gave a stream up is no fault.
            if stream is None or not stream.is_answered:
                self.faults.append(f"DATA on stream {frame.stream}, which is not open")
            return
        stream.receive_window -= size
        if stream.receive_window < 0:
            self.faults.append(f"more than the window of stream {frame.stream}")
        stream.body += frame.content
        if frame.ends_stream:
            yield from self._hear(frame.stream)
        elif self.grants and size:
            self.grant(frame.stream, size)

    def _take_other(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.RST_STREAM:
                self._take_reset(frame)
            case Kind.SETTINGS:
                self._take_settings(frame)
            case Kind.PING if frame.flags & ACK:
                self._is_left |= frame.payload == _LEFT
            case Kind.PING:
                self.send(build_ping(frame.payload, ack=True))
            case Kind.WINDOW_UPDATE:
                self._take_window(frame)

    def _take_reset(self, frame: Frame) -> None:
        if frame.stream not in self.streams:
            self.faults.append(f"RST_STREAM on stream {frame.stream}, which is idle")
        elif self.streams[frame.stream].is_open:
            self.streams[frame.stream].reset = frame.number
            self._note_over(frame.stream)

    def _take_settings(self, frame: Frame) -> None:
        self._has_client = True
        if frame.flags & ACK:
            if not self._unconfirmed:  # a script has sent others behind its back
                return
            self._is_known = True
            before = self._confirmed.get(Setting.INITIAL_WINDOW_SIZE, WINDOW)
            self._confirmed |= self._unconfirmed.popleft()
            self._decoder.max_allowed_table_size = self._confirmed.get(
                Setting.HEADER_TABLE_SIZE, _TABLE_BYTES
            )
            grown = self._confirmed.get(Setting.INITIAL_WINDOW_SIZE, WINDOW) - before
            for stream in self.streams.values():
                stream.receive_window += grown
        else:
            before = self.client.get(Setting.INITIAL_WINDOW_SIZE, WINDOW)
            self.client |= frame.settings
            grown = self.client.get(Setting.INITIAL_WINDOW_SIZE, WINDOW) - before
            for stream in self.streams.values():
                stream.send_window += grown
            self.send(build_settings_ack())

    def _take_window(self, frame: Frame) -> None:
        if not frame.stream:
            self._send_window += frame.number
        elif (stream := self.streams.get(frame.stream)) is not None:
            stream.send_window += frame.number

    def _give_up(self, stream: int) -> None:
        self.streams[stream].is_heard = self.streams[stream].is_answered = True
        self._note_over(stream)

    def _note_over(self, stream: int) -> None:
        if not self.streams[stream].is_open:
            self.open_streams.discard(stream)

    def _note_moved(self) -> None:
        moved, self.moved = self.moved, asyncio.Event()
        moved.set()
