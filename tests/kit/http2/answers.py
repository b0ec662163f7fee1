"""Answers of HTTP/2, and what RFC 9113 has a client make of each; the engine is held against these tables.

A section is one of RFC 9113 unless it begins with another number: `7541:` is HPACK, `9110:` are the semantics
of HTTP. Each answer is that to a request on a stream.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.kit.http2.frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES,
    LARGEST_WINDOW,
    PADDED,
    WITH_PRIORITY,
    ErrorCode,
    Fields,
    Kind,
    Setting,
    build_block,
    build_continuation,
    build_data,
    build_frame,
    build_goaway,
    build_headers,
    build_ping,
    build_priority,
    build_push_promise,
    build_reset,
    build_settings,
    build_settings_ack,
    build_window_update,
    encode_fields,
)

Build = Callable[[int], bytes]
"""Makes what answers the request on a stream."""

_OK = ((":status", "200"),)
_REQUEST = ((":method", "GET"), (":scheme", "http"), (":authority", "host"), (":path", "/pushed"))
_HI = b"hi"


class Fate(StrEnum):
    """What becomes of the connection."""

    KEPT = "kept"
    """It takes the next request."""
    ENDED = "ended"
    """It takes none."""
    EITHER = "either"
    """A fault of a stream may be treated as one of its connection (5.4.2), and some do nobody any harm."""


@dataclass(frozen=True)
class Valid:
    """An answer that is accepted."""

    section: str
    build: Build
    status: int = 200
    size: int = 2
    fate: Fate = Fate.KEPT
    method: str = "GET"


@dataclass(frozen=True)
class Invalid:
    """An answer that is refused.

    Attributes:
        outcome: of the request.
    """

    section: str
    build: Build
    fate: Fate = Fate.KEPT
    outcome: str = "protocol_error"
    method: str = "GET"


@dataclass(frozen=True)
class Greeting:
    """What a server says before anything else.

    Attributes:
        content: the bytes.
        outcome: of each request; none of them may have been sent.
        hangs_up: whether the server ends the connection then.
    """

    section: str
    content: bytes
    outcome: str = "connect_error"
    hangs_up: bool = False


@dataclass(frozen=True)
class Flood:
    """What a server sends without end.

    Attributes:
        first: what begins it.
        again: what is repeated.
        outcome: of each request.
        fields: what else is in the spec.
    """

    section: str
    first: Build
    again: Build
    outcomes: frozenset[str] = frozenset({"protocol_error"})
    fields: Mapping[str, object] = field(default_factory=dict)


def _hi(stream: int) -> bytes:
    """The whole answer."""
    return build_headers(stream, _OK) + build_data(stream, _HI)


def _before(content: bytes) -> Build:
    """Something of no stream in particular, and then the whole answer."""
    return lambda stream: content + _hi(stream)


def _head(*fields: tuple[str | bytes, str | bytes], status: Fields = _OK) -> Build:
    """An answer with such fields."""
    return lambda stream: build_headers(stream, (*status, *fields)) + build_data(stream, _HI)


def _fields(*fields: tuple[str | bytes, str | bytes]) -> Build:
    """An answer with these fields and no other."""
    return _head(*fields, status=())


def _trailers(*fields: tuple[str, str], end: bool = True) -> Build:
    """An answer with such trailers."""
    return lambda stream: (
        build_headers(stream, _OK)
        + build_data(stream, _HI, end=False)
        + build_headers(stream, fields, end=end)
    )


def _block(block: bytes) -> Build:
    """An answer with a header block of these bytes."""
    return lambda stream: build_block(stream, block) + build_data(stream, _HI)


def _within(content: bytes) -> Build:
    """Something between the head of an answer and its body."""
    return lambda stream: build_headers(stream, _OK) + content + build_data(stream, _HI)


def _interim(status: str, *, end: bool = False) -> Build:
    return lambda stream: build_headers(stream, [(":status", status)], end=end) + _hi(stream)


def _reset(code: int) -> Invalid:
    return Invalid("6.4", lambda stream: build_reset(stream, code), outcome="disconnected")


VALID: dict[str, Valid] = {
    # Messages
    "a head and a body": Valid("8.1", _hi),
    "a head alone": Valid("8.1", lambda s: build_headers(s, _OK, end=True), size=0),
    "an empty end": Valid(
        "8.1", lambda s: build_headers(s, _OK) + build_data(s, _HI, end=False) + build_data(s)
    ),
    "empty DATA in between": Valid(
        "6.1", lambda s: build_headers(s, _OK) + build_data(s, end=False) * 5 + build_data(s, _HI)
    ),
    "a body byte by byte": Valid(
        "8.1",
        lambda s: build_headers(s, _OK) + build_data(s, b"h", end=False) + build_data(s, b"i", end=True),
    ),
    "a length": Valid("8.1.1", _head(("content-length", "2"))),
    "a length of nothing": Valid(
        "8.1.1", lambda s: build_headers(s, [*_OK, ("content-length", "0")], end=True), size=0
    ),
    "trailers": Valid("8.1", _trailers(("x-checked", "yes"))),
    "trailers without a body": Valid(
        "8.1", lambda s: build_headers(s, _OK) + build_headers(s, [("x", "y")], end=True), size=0
    ),
    "100": Valid("8.1", _interim("100")),
    "103 twice": Valid("8.1", lambda s: build_headers(s, [(":status", "103")]) + _interim("103")(s)),
    "204": Valid("9110:15.3.5", lambda s: build_headers(s, [(":status", "204")], end=True), 204, 0),
    "304 with a length": Valid(
        "8.1.1",
        lambda s: build_headers(s, [(":status", "304"), ("content-length", "9")], end=True),
        304,
        0,
    ),
    "an answer to HEAD with a length": Valid(
        "8.1.1",
        lambda s: build_headers(s, [*_OK, ("content-length", "9")], end=True),
        size=0,
        method="HEAD",
    ),
    "status 404": Valid("8.3.2", _fields((":status", "404")), 404),
    "status 599": Valid("8.3.2", _fields((":status", "599")), 599),
    # Frames
    "padding": Valid(
        "6.1",
        lambda s: (
            build_frame(
                Kind.HEADERS,
                b"\x05" + encode_fields(_OK) + bytes(5),
                stream=s,
                flags=END_HEADERS | PADDED,
            )
            + build_data(s, _HI, padding=200)
        ),
    ),
    "nothing but padding": Valid(
        "6.1", lambda s: build_headers(s, _OK) + build_data(s, end=False, padding=255) + build_data(s, _HI)
    ),
    "a head with a priority": Valid(
        "6.2",
        lambda s: (
            build_frame(
                Kind.HEADERS,
                bytes(5) + encode_fields(_OK),
                stream=s,
                flags=END_HEADERS | WITH_PRIORITY,
            )
            + build_data(s, _HI)
        ),
    ),
    "a head in pieces": Valid(
        "6.10",
        lambda s: build_headers(s, [*_OK, ("x", "y" * 50)], pieces=5) + build_data(s, _HI),
    ),
    "an empty CONTINUATION": Valid(
        "6.10",
        lambda s: build_block(s, encode_fields(_OK), flags=0) + build_continuation(s) + build_data(s, _HI),
    ),
    "a head of 40 kB": Valid(
        "4.3",
        lambda s: build_headers(s, [*_OK, ("x", "y" * 40_000)], pieces=4) + build_data(s, _HI),
    ),
    "200 fields": Valid("4.3", _head(*[("x", "y")] * 200)),
    "PRIORITY in between": Valid("6.3", lambda s: build_priority(s) + _hi(s)),
    "PING in between": Valid("6.7", _within(build_ping(b"01234567"))),
    "a window that grows": Valid("6.9", lambda s: build_window_update(s, 1000) + _hi(s)),
    "an unknown frame": Valid("4.1", _within(build_frame(0xBE, b"any", stream=0, flags=0xFF))),
    "an unknown frame of the stream": Valid("5.5", lambda s: build_frame(0xBE, b"any", stream=s) + _hi(s)),
    "unknown flags": Valid(
        "4.1",
        lambda s: (
            build_headers(s, _OK)
            + build_frame(Kind.DATA, _HI, stream=s, flags=END_STREAM | 0x40 | 0x80 | 0x10)
        ),
    ),
    "the reserved bit of a stream": Valid(
        "4.1",
        lambda s: build_headers(s, _OK)
        + build_frame(Kind.DATA, _HI, stream=s | 1 << 31, flags=END_STREAM),
    ),
    "an unknown setting": Valid("6.5.2", _within(build_settings({0xBEEF: 7}))),
    "settings that change": Valid(
        "6.5.3", _within(build_settings({Setting.INITIAL_WINDOW_SIZE: 1, Setting.MAX_FRAME_SIZE: 1 << 20}))
    ),
    "a GOAWAY after this request": Valid(
        "6.8", lambda s: build_goaway(s) + _hi(s), fate=Fate.ENDED
    ),
    "a reset of what is complete": Valid(
        "8.1", lambda s: _hi(s) + build_reset(s, ErrorCode.NO_ERROR)
    ),
    # HPACK
    "a smaller table": Valid("7541:4.2", _block(b"\x20" + encode_fields(_OK))),
    "a table that comes and goes": Valid("7541:4.2", _block(b"\x20\x3f\xe1\x1f" + encode_fields(_OK))),
    "a field that is never indexed": Valid("7541:6.2.3", _block(encode_fields(_OK) + b"\x10\x01x\x01y")),
    "a field without Huffman": Valid("7541:5.2", _block(encode_fields(_OK) + b"\x00\x01x\x01y")),
    # What is of no use
    "DATA after the end": Valid("5.1", lambda s: _hi(s) + build_data(s, _HI), fate=Fate.EITHER),
    "a second answer": Valid("5.1", lambda s: _hi(s) + _hi(s), fate=Fate.EITHER),
    "a PING that answers none": Valid("6.7", _within(build_ping(ack=True)), fate=Fate.EITHER),
}  # fmt: skip

INVALID: dict[str, Invalid] = {
    # Messages
    "no status": Invalid("8.3.2", _fields(("x", "y"))),
    "an empty head": Invalid("8.3.2", _fields()),
    "two statuses": Invalid("8.3", _fields((":status", "200"), (":status", "200"))),
    "an empty status": Invalid("8.3.2", _fields((":status", ""))),
    "status 20": Invalid("8.3.2", _fields((":status", "20"))),
    "status 2000": Invalid("8.3.2", _fields((":status", "2000"))),
    "status 2x0": Invalid("8.3.2", _fields((":status", "2x0"))),
    "status -20": Invalid("8.3.2", _fields((":status", "-20"))),
    "101": Invalid("8.6", _interim("101")),
    "an interim response that ends": Invalid("8.1", _interim("103", end=True), fate=Fate.EITHER),
    "a body after an interim response": Invalid(
        "8.1", lambda s: build_headers(s, [(":status", "103")]) + build_data(s, _HI)
    ),
    "a field of requests": Invalid("8.3", _head((":path", "/"))),
    "an unknown pseudo-header field": Invalid("8.3", _head((":whatever", "x"))),
    "a status behind other fields": Invalid("8.3", _fields(("x", "y"), *_OK)),
    "a pseudo-header field in trailers": Invalid("8.1", _trailers((":status", "200"))),
    "trailers that are not the end": Invalid("8.1", _trailers(("x", "y"), end=False)),
    "a body before its head": Invalid(
        "8.1", lambda s: build_data(s, _HI, end=False) + _hi(s), Fate.EITHER
    ),
    "a body and no head": Invalid("8.1", lambda s: build_data(s, _HI), Fate.EITHER),
    "Connection": Invalid("8.2.2", _head(("connection", "close"))),
    "Transfer-Encoding": Invalid("8.2.2", _head(("transfer-encoding", "chunked"))),
    "Keep-Alive": Invalid("8.2.2", _head(("keep-alive", "timeout=5"))),
    "Proxy-Connection": Invalid("8.2.2", _head(("proxy-connection", "keep-alive"))),
    "Upgrade": Invalid("8.2.2", _head(("upgrade", "h3"))),
    "a name with a capital": Invalid("8.2.1", _head(("X-Any", "y"))),
    "a name with a blank": Invalid("8.2.1", _head(("x y", "z"))),
    "a name with a colon": Invalid("8.2.1", _head(("x:y", "z"))),
    "an empty name": Invalid("8.2.1", _head(("", "z"))),
    "NUL in a value": Invalid("8.2.1", _head(("x", "a\0b"))),
    "LF in a value": Invalid("8.2.1", _head(("x", "a\nb"))),
    "CR in a value": Invalid("8.2.1", _head(("x", "a\rb"))),
    "a blank before a value": Invalid("8.2.1", _head(("x", " a"))),
    "a blank after a value": Invalid("8.2.1", _head(("x", "a "))),
    # Length
    "less than the length": Invalid("8.1.1", _head(("content-length", "9"))),
    "more than the length": Invalid("8.1.1", _head(("content-length", "1"))),
    "a length and no body": Invalid(
        "8.1.1", lambda s: build_headers(s, [*_OK, ("content-length", "2")], end=True)
    ),
    "two lengths": Invalid("8.1.1", _head(("content-length", "2"), ("content-length", "3"))),
    "a length with a sign": Invalid("8.1.1", _head(("content-length", "+2"))),
    "a negative length": Invalid("8.1.1", _head(("content-length", "-2"))),
    "a length that is not a number": Invalid("8.1.1", _head(("content-length", "two"))),
    "an empty length": Invalid("8.1.1", _head(("content-length", ""))),
    "a length beyond 64 bits": Invalid("8.1.1", _head(("content-length", "18446744073709551616"))),
    "204 with a body": Invalid("9110:15.3.5", _fields((":status", "204"))),
    "304 with a body": Invalid("9110:15.4.5", _fields((":status", "304"))),
    "an answer to HEAD with a body": Invalid("8.1.1", _hi, method="HEAD"),
    # Streams
    **{f"reset with {code.name}": _reset(code) for code in ErrorCode if code != ErrorCode.REFUSED_STREAM},
    "reset with a code that nobody knows": _reset(0xBEEF),
    "reset after the head": Invalid(
        "6.4", lambda s: build_headers(s, _OK) + build_reset(s), outcome="disconnected"
    ),
    "reset within the body": Invalid(
        "6.4",
        lambda s: build_headers(s, _OK) + build_data(s, _HI, end=False) + build_reset(s),
        outcome="disconnected",
    ),
    "reset without an error within the body": Invalid(
        "8.1",
        lambda s: build_headers(s, _OK)
        + build_data(s, _HI, end=False)
        + build_reset(s, ErrorCode.NO_ERROR),
        outcome="disconnected",
    ),
    "a window that grows by nothing": Invalid(
        "6.9", lambda s: build_window_update(s, 0) + _hi(s), Fate.EITHER
    ),
    "a window that grows too large": Invalid(
        "6.9.1", lambda s: build_window_update(s, LARGEST_WINDOW) + _hi(s), Fate.EITHER
    ),
    # Frames of no stream, and of another one
    "DATA of no stream": Invalid("6.1", _before(build_data(0, _HI)), Fate.ENDED),
    "HEADERS of no stream": Invalid("6.2", _before(build_headers(0, _OK)), Fate.ENDED),
    "RST_STREAM of no stream": Invalid("6.4", _before(build_reset(0)), Fate.ENDED),
    "CONTINUATION of no stream": Invalid("6.10", _before(build_continuation(0)), Fate.ENDED),
    "SETTINGS of a stream": Invalid(
        "6.5", lambda s: build_frame(Kind.SETTINGS, stream=s) + _hi(s), Fate.ENDED
    ),
    "PING of a stream": Invalid(
        "6.7", lambda s: build_frame(Kind.PING, bytes(8), stream=s) + _hi(s), Fate.ENDED
    ),
    "GOAWAY of a stream": Invalid(
        "6.8", lambda s: build_frame(Kind.GOAWAY, bytes(8), stream=s) + _hi(s), Fate.ENDED
    ),
    "HEADERS of an idle stream": Invalid(
        "5.1.1", lambda s: build_headers(s + 100, _OK) + _hi(s), Fate.ENDED
    ),
    "HEADERS of a stream of the server": Invalid("5.1.1", _before(build_headers(2, _OK)), Fate.ENDED),
    "DATA of an idle stream": Invalid("5.1", lambda s: build_data(s + 100, _HI) + _hi(s), Fate.ENDED),
    "RST_STREAM of an idle stream": Invalid("6.4", lambda s: build_reset(s + 100) + _hi(s), Fate.ENDED),
    "WINDOW_UPDATE of an idle stream": Invalid(
        "5.1", lambda s: build_window_update(s + 100, 1) + _hi(s), Fate.ENDED
    ),
    "PUSH_PROMISE": Invalid(
        "8.4", lambda s: build_push_promise(s, 2, _REQUEST) + _hi(s), Fate.ENDED
    ),
    "PUSH_PROMISE of no stream": Invalid(
        "6.6", _before(build_push_promise(0, 2, _REQUEST)), Fate.ENDED
    ),
    # Sizes of frames
    "a frame that is too long": Invalid(
        "4.2",
        lambda s: build_headers(s, _OK) + build_data(s, bytes(FRAME_BYTES + 1)),
        Fate.EITHER,
    ),
    "a head that is too long": Invalid(
        "4.2",
        lambda s: build_block(s, encode_fields([*_OK, ("x", "y" * 2 * FRAME_BYTES)])) + build_data(s),
        Fate.ENDED,
    ),
    "SETTINGS of five bytes": Invalid("6.5", _within(build_frame(Kind.SETTINGS, bytes(5))), Fate.ENDED),
    "confirmed settings with a payload": Invalid(
        "6.5", _within(build_frame(Kind.SETTINGS, bytes(6), flags=ACK)), Fate.ENDED
    ),
    "PING of seven bytes": Invalid("6.7", _within(build_ping(bytes(7))), Fate.ENDED),
    "RST_STREAM of three bytes": Invalid(
        "6.4", lambda s: build_frame(Kind.RST_STREAM, bytes(3), stream=s) + _hi(s), Fate.ENDED
    ),
    "WINDOW_UPDATE of three bytes": Invalid(
        "6.9", _within(build_frame(Kind.WINDOW_UPDATE, bytes(3))), Fate.ENDED
    ),
    "GOAWAY of seven bytes": Invalid("6.8", _within(build_frame(Kind.GOAWAY, bytes(7))), Fate.ENDED),
    "more padding than payload": Invalid(
        "6.1",
        lambda s: build_headers(s, _OK)
        + build_frame(Kind.DATA, b"\x09hi", stream=s, flags=END_STREAM | PADDED),
        Fate.ENDED,
    ),
    "more padding than head": Invalid(
        "6.2",
        lambda s: build_frame(Kind.HEADERS, b"\xff\x88", stream=s, flags=END_HEADERS | PADDED) + _hi(s),
        Fate.ENDED,
    ),
    # Header blocks
    "CONTINUATION of nothing": Invalid("6.10", lambda s: build_continuation(s) + _hi(s), Fate.ENDED),
    "another frame within a head": Invalid(
        "6.2",
        lambda s: build_block(s, encode_fields(_OK), flags=0) + build_ping() + build_continuation(s),
        Fate.ENDED,
    ),
    "a body within a head": Invalid(
        "6.2",
        lambda s: build_block(s, encode_fields(_OK), flags=0) + build_data(s, _HI),
        Fate.ENDED,
    ),
    "CONTINUATION of another stream": Invalid(
        "6.10",
        lambda s: build_block(s, encode_fields(_OK), flags=0) + build_continuation(s + 2),
        Fate.ENDED,
    ),
    "an index of no field": Invalid("7541:2.3.3", _block(b"\xfe"), Fate.ENDED),
    "index 0": Invalid("7541:6.1", _block(b"\x80"), Fate.ENDED),
    "a number without end": Invalid("7541:5.1", _block(b"\xff" + b"\xff" * 10), Fate.ENDED),
    "a field that is cut off": Invalid("7541:5.2", _block(encode_fields(_OK) + b"\x00\x05x"), Fate.ENDED),
    "Huffman that ends too early": Invalid(
        "7541:5.2", _block(encode_fields(_OK) + b"\x00\x01x\x84\xff\xff\xff\xff"), Fate.ENDED
    ),
    "a table that is too large": Invalid(
        "7541:6.3", _block(b"\x3f\xff\xff\xff\x07" + encode_fields(_OK)), Fate.ENDED
    ),
    "a table that changes too late": Invalid("7541:4.2", _block(encode_fields(_OK) + b"\x20"), Fate.ENDED),
    # Settings and windows
    "push is enabled": Invalid("6.5.2", _within(build_settings({Setting.ENABLE_PUSH: 1})), Fate.ENDED),
    "push is neither": Invalid("6.5.2", _within(build_settings({Setting.ENABLE_PUSH: 2})), Fate.ENDED),
    "a window beyond 31 bits": Invalid(
        "6.5.2", _within(build_settings({Setting.INITIAL_WINDOW_SIZE: 1 << 31})), Fate.ENDED
    ),
    "frames of nothing": Invalid(
        "6.5.2", _within(build_settings({Setting.MAX_FRAME_SIZE: FRAME_BYTES - 1})), Fate.ENDED
    ),
    "frames beyond 24 bits": Invalid(
        "6.5.2", _within(build_settings({Setting.MAX_FRAME_SIZE: 1 << 24})), Fate.ENDED
    ),
    "a window of the connection that grows by nothing": Invalid(
        "6.9", _within(build_window_update(0, 0)), Fate.ENDED
    ),
    "a window of the connection that grows too large": Invalid(
        "6.9.1", _within(build_window_update(0, LARGEST_WINDOW)), Fate.ENDED
    ),
}  # fmt: skip

GREETINGS: dict[str, Greeting] = {
    "an answer of HTTP/1.1": Greeting("3.4", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "another protocol": Greeting("3.4", b"220 mail.example ESMTP\r\n"),
    "bytes of TLS": Greeting("3.4", b"\x15\x03\x01\x00\x02\x02\x46", hangs_up=True),
    "garbage": Greeting("3.4", bytes(range(255, 200, -1))),
    "the client's own preface": Greeting("3.4", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a PING": Greeting("3.4", build_ping()),
    "an answer before the settings": Greeting("3.4", build_headers(1, _OK, end=True)),
    "confirmed settings": Greeting("3.4", build_settings_ack()),
    "settings that are too long": Greeting("4.2", build_settings(dict.fromkeys(range(100, 4000), 0))),
    "a window beyond 31 bits": Greeting("6.5.2", build_settings({Setting.INITIAL_WINDOW_SIZE: 1 << 31})),
    "nothing": Greeting("3.4", b"", "timeout"),
    "half of the settings": Greeting("3.4", build_settings({1: 2})[:-2], "timeout"),
    "nothing, and the end": Greeting("3.4", b"", hangs_up=True),
    "half of the settings, and the end": Greeting("3.4", build_settings({1: 2})[:-2], hangs_up=True),
    "GOAWAY in the place of settings": Greeting("6.8", build_goaway(0), hangs_up=True),
}

_MANY = 1000
_BOTH = frozenset({"protocol_error", "timeout"})
_COSTLY = encode_fields([(":status", "200"), ("x", "y" * 4000)]) + b"\xbe" * 16_000
"""A field of 4 kB, and 16,000 times the same in a byte each."""

FLOODS: dict[str, Flood] = {
    "CONTINUATION": Flood(
        "10.5",
        lambda s: build_block(s, encode_fields(_OK), flags=0),
        lambda s: build_continuation(s, b"\x00\x01x\x01y" * 100, end=False) * _MANY,
    ),
    "empty CONTINUATION": Flood(
        "10.5.1",
        lambda s: build_block(s, encode_fields(_OK), flags=0),
        lambda s: build_continuation(s, end=False) * _MANY,
    ),
    "header bombs": Flood("10.5.1", lambda s: build_block(s, _COSTLY), lambda _: build_ping()),
    "interim responses": Flood(
        "8.1", lambda _: b"", lambda s: build_headers(s, [(":status", "103"), ("x", "y" * 1000)]) * 100, _BOTH
    ),
    "SETTINGS": Flood("10.5", lambda _: b"", lambda _: build_settings({1: 4096}) * _MANY, _BOTH),
    "PING": Flood("10.5", lambda _: b"", lambda _: build_ping() * _MANY, _BOTH),
    "RST_STREAM": Flood(
        "10.5", build_reset, lambda s: build_reset(s) * _MANY, _BOTH | {"disconnected"}
    ),
    "PRIORITY": Flood("10.5", lambda _: b"", lambda s: build_priority(s) * _MANY, _BOTH),
    "WINDOW_UPDATE": Flood("10.5", lambda _: b"", lambda _: build_window_update(0, 1) * _MANY, _BOTH),
    "empty DATA": Flood(
        "10.5", lambda s: build_headers(s, _OK), lambda s: build_data(s, end=False) * _MANY, _BOTH
    ),
    "padding": Flood(
        "10.5",
        lambda s: build_headers(s, _OK),
        lambda s: build_data(s, end=False, padding=255) * 10,
        _BOTH,
    ),
    "unknown frames": Flood("5.5", lambda _: b"", lambda _: build_frame(0xBE, bytes(1000)) * 100, _BOTH),
    "GOAWAY": Flood(
        "6.8", lambda _: b"", lambda s: build_goaway(s, debug=bytes(1000)) * 100, _BOTH | {"disconnected"}
    ),
}  # fmt: skip
