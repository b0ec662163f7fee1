"""Frames of HTTP/2, built and taken apart; nothing is checked, for servers of tests may send anything.

Sections are those of RFC 9113. Header blocks are encoded by themselves: none refers to one before it, so that
each of them means the same on any connection, whatever was sent on it.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from hpack import Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client says first (3.4)."""
END_STREAM = ACK = 0x01
END_HEADERS, PADDED, WITH_PRIORITY = 0x04, 0x08, 0x20
FRAME_BYTES = 16_384
"""The longest payload that nobody need ask for (4.2)."""
WINDOW = 65_535
"""The window of a connection, and of its streams, unless somebody says otherwise (6.9.2)."""
LARGEST_WINDOW = 2**31 - 1
_HEAD_BYTES = 9
_STREAM_BITS = 0x7FFF_FFFF

Fields = Iterable[tuple[str | bytes, str | bytes]]
"""Names and values in their order, pseudo-header fields first."""


class Kind(IntEnum):
    """Types of frames (6)."""

    DATA = 0x0
    HEADERS = 0x1
    PRIORITY = 0x2
    RST_STREAM = 0x3
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    PING = 0x6
    GOAWAY = 0x7
    WINDOW_UPDATE = 0x8
    CONTINUATION = 0x9


class Setting(IntEnum):
    """What a side says of itself (6.5.2)."""

    HEADER_TABLE_SIZE = 0x1
    ENABLE_PUSH = 0x2
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


class ErrorCode(IntEnum):
    """Why a stream or a connection ends (7)."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


@dataclass(frozen=True)
class Frame:
    """One frame as it came."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def ends_stream(self) -> bool:
        """Whether its sender sends nothing more on the stream."""
        return self.kind in (Kind.DATA, Kind.HEADERS) and bool(self.flags & END_STREAM)

    @property
    def ends_headers(self) -> bool:
        """Whether a header block ends with it."""
        return bool(self.flags & END_HEADERS)

    @property
    def number(self) -> int:
        """The only number in it: the increment of a window, or the reason of an RST_STREAM."""
        return int.from_bytes(self.payload[:4])

    @property
    def settings(self) -> dict[int, int]:
        """What a SETTINGS frame says."""
        return dict(struct.iter_unpack("!HL", self.payload))

    @property
    def content(self) -> bytes:
        """The payload without padding and priority."""
        payload, padding = self.payload, 0
        if self.kind in (Kind.DATA, Kind.HEADERS) and self.flags & PADDED:
            payload, padding = payload[1:], payload[0]
        if self.kind == Kind.HEADERS and self.flags & WITH_PRIORITY:
            payload = payload[5:]
        return payload[: len(payload) - padding]


class FrameReader:
    """Takes what a client sends apart."""

    def __init__(self) -> None:
        self._received = b""
        self.has_preface = False
        """Whether the client has begun as one of HTTP/2 does."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now; `ValueError` if the client begins with anything else."""
        self._received += data
        if not self.has_preface:
            if not self._received.startswith(PREFACE):
                if not PREFACE.startswith(self._received):
                    raise ValueError(f"not a client of HTTP/2: {self._received[:40]!r}")
                return
            self.has_preface = True
            self._received = self._received[len(PREFACE) :]
        while len(self._received) >= _HEAD_BYTES:
            end = _HEAD_BYTES + int.from_bytes(self._received[:3])
            if len(self._received) < end:
                return
            head, payload = self._received[:_HEAD_BYTES], self._received[_HEAD_BYTES:end]
            self._received = self._received[end:]
            yield Frame(head[3], head[4], int.from_bytes(head[5:]) & _STREAM_BITS, payload)


def build_frame(
    kind: int, payload: bytes = b"", *, stream: int = 0, flags: int = 0, length: int | None = None
) -> bytes:
    """Any frame; it may lie about its length."""
    length = len(payload) if length is None else length
    return length.to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def encode_fields(fields: Fields) -> bytes:
    """A header block."""
    return Encoder().encode(list(fields))


def build_block(
    stream: int, block: bytes, *, flags: int = END_HEADERS, pieces: int = 1, kind: int = Kind.HEADERS
) -> bytes:
    """A header block in so many frames: HEADERS, or what else may begin one, and CONTINUATION."""
    size = -(-len(block) // pieces) or 1
    parts = [block[at : at + size] for at in range(0, len(block), size)] or [b""]
    first = flags if len(parts) == 1 else flags & ~END_HEADERS
    frames = [build_frame(kind, parts[0], stream=stream, flags=first)]
    for number, part in enumerate(parts[1:], 2):
        end = flags & END_HEADERS if number == len(parts) else 0
        frames.append(build_frame(Kind.CONTINUATION, part, stream=stream, flags=end))
    return b"".join(frames)


def build_headers(stream: int, fields: Fields, *, end: bool = False, pieces: int = 1) -> bytes:
    """HEADERS, and CONTINUATION as often as its block is cut."""
    flags = END_HEADERS | (END_STREAM if end else 0)
    return build_block(stream, encode_fields(fields), flags=flags, pieces=pieces)


def build_continuation(stream: int, block: bytes = b"", *, end: bool = True) -> bytes:
    """One CONTINUATION; `end` says whether it is the last."""
    return build_frame(Kind.CONTINUATION, block, stream=stream, flags=END_HEADERS if end else 0)


def build_data(stream: int, content: bytes = b"", *, end: bool = True, padding: int | None = None) -> bytes:
    """DATA, padded with so many bytes if it is padded."""
    flags = END_STREAM if end else 0
    if padding is not None:
        flags, content = flags | PADDED, bytes((padding,)) + content + bytes(padding)
    return build_frame(Kind.DATA, content, stream=stream, flags=flags)


def build_settings(settings: Mapping[int, int] | None = None) -> bytes:
    """SETTINGS."""
    pairs = (settings or {}).items()
    return build_frame(Kind.SETTINGS, b"".join(struct.pack("!HL", *pair) for pair in pairs))


def build_settings_ack() -> bytes:
    """What answers SETTINGS."""
    return build_frame(Kind.SETTINGS, flags=ACK)


def build_reset(stream: int, code: int = ErrorCode.CANCEL) -> bytes:
    """RST_STREAM."""
    return build_frame(Kind.RST_STREAM, code.to_bytes(4), stream=stream)


def build_goaway(last_stream: int, code: int = ErrorCode.NO_ERROR, debug: bytes = b"") -> bytes:
    """GOAWAY: streams above the last one were not looked at."""
    return build_frame(Kind.GOAWAY, struct.pack("!LL", last_stream, code) + debug)


def build_ping(opaque: bytes = bytes(8), *, ack: bool = False) -> bytes:
    """PING, or what answers it."""
    return build_frame(Kind.PING, opaque, flags=ACK if ack else 0)


def build_window_update(stream: int, increment: int) -> bytes:
    """WINDOW_UPDATE: of the connection with stream 0."""
    return build_frame(Kind.WINDOW_UPDATE, increment.to_bytes(4), stream=stream)


def build_priority(stream: int, depends_on: int = 0, weight: int = 15) -> bytes:
    """PRIORITY, which nobody heeds any more."""
    return build_frame(Kind.PRIORITY, struct.pack("!LB", depends_on, weight), stream=stream)


def build_push_promise(stream: int, promised: int, fields: Fields) -> bytes:
    """PUSH_PROMISE."""
    block = promised.to_bytes(4) + encode_fields(fields)
    return build_block(stream, block, kind=Kind.PUSH_PROMISE)
