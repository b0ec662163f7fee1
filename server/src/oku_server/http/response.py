"""The responses of the delay server: their bytes, when they are written, and what comes after them.

There is no `Date` and no `Server` header: every byte would also cost the measured client some time.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
"""The header that an HTTP/1.0 client wants to see; HTTP/1.1 keeps a connection open without it."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What a client waits for before it sends a body, if it says `Expect: 100-continue`."""
COPY_LIMIT_BYTES = 65_536
"""Bodies up to this size are copied behind their head: one write is cheaper than a vector of two."""


class Ending(Enum):
    """What happens to the connection after a response."""

    OPEN = auto()
    """It takes the next request."""
    CLOSE = auto()
    """It is closed in order."""
    RESET = auto()
    """It is reset, and nothing is written."""
    NEVER = auto()
    """There is no response, however long the client waits."""


class Response(NamedTuple):
    """How many seconds to wait, which buffers to write then, in order, and what happens to the connection."""

    delay_s: float
    buffers: tuple[bytes, ...]
    ending: Ending


@dataclass(frozen=True)
class Content:
    """What a response says: status (code and phrase), body, and the body's type if it is stated."""

    status: bytes
    body: bytes
    content_type: bytes = b""


def build_response(
    content: Content,
    *,
    connection: bytes,
    headers: bytes = b"",
    sent: int | None = None,
    delay_s: float = 0.0,
) -> Response:
    """Build a response with its head.

    Args:
        content: what the response says.
        connection: the header that tells what happens to the connection: `CLOSE`, `KEEP_ALIVE` or nothing.
        headers: more headers, each with its line ending.
        sent: how many bytes of the body follow a head that announces all of it; all of them unless given.
        delay_s: how long the response waits.
    """
    if content.content_type:
        headers = b"Content-Type: %b\r\n%b" % (content.content_type, headers)
    head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b%b\r\n" % (
        content.status, len(content.body), headers, connection,
    )  # fmt: skip
    body = content.body[:sent]
    buffers = (head + body,) if len(body) <= COPY_LIMIT_BYTES else (head, body)
    return Response(delay_s, buffers, Ending.CLOSE if connection == CLOSE else Ending.OPEN)


def build_text(status: bytes, text: bytes) -> Content:
    """Content that is one line of text for people."""
    return Content(status, text, b"text/plain; charset=utf-8")


def build_refusal(status: bytes, reason: bytes = b"") -> Content:
    """Content for a request that cannot be read, or only at too high a cost; the reason is one line."""
    return build_text(status, (reason or status.lower()) + b"\n")
