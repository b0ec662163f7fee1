"""The answers of the delay server as bytes: head and body, ready to be written.

There is no `Date` and no `Server` header: every byte costs the client that is measured some time, too.
"""

from dataclasses import dataclass

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
"""What a client of HTTP/1.0 wants to see; HTTP/1.1 keeps a connection without it."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What a client waits for before it sends a body, if it says `Expect: 100-continue`."""
COPY_LIMIT_BYTES = 65_536
"""Bodies up to here are copied behind their head: one write is cheaper than a vector of two."""

Buffers = tuple[bytes, ...]
"""What is to be written, one after the other."""


@dataclass(frozen=True)
class Answer:
    """Status (code and phrase), body, and the type of the body where somebody may ask for it."""

    status: bytes
    body: bytes
    content_type: bytes = b""

    def build(self, headers: bytes, sent: int | None = None) -> Buffers:
        """Head and body, with more headers (each with the end of its line).

        The head announces the whole body; `sent` bytes of it follow, all of them if that is None.
        """
        if self.content_type:
            headers = b"Content-Type: %b\r\n%b" % (self.content_type, headers)
        head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n" % (self.status, len(self.body), headers)
        body = self.body[:sent]
        return (head + body,) if len(body) <= COPY_LIMIT_BYTES else (head, body)


def build_ok(body: bytes) -> Answer:
    """A proper answer."""
    return Answer(b"200 OK", body)


def build_error() -> Answer:
    """What `Fault.ERROR` answers."""
    return Answer(b"500 Internal Server Error", b"an error, as asked for by --error-rate\n")


def build_refusal(status: bytes, reason: bytes = b"") -> Answer:
    """What a request gets that cannot be read, or only at too high a price; the reason is one line."""
    return build_text(status, (reason or status.lower()) + b"\n")


def build_text(status: bytes, text: bytes) -> Answer:
    """A line for a human."""
    return Answer(status, text, b"text/plain; charset=utf-8")
