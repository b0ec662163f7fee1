"""The answers of the delay server as bytes: head and body, ready to be written.

There is no `Date` and no `Server` header: every byte costs the client that is measured some time, too.
"""

from dataclasses import dataclass

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"
"""What a client of HTTP/1.0 wants to see; HTTP/1.1 keeps a connection without it."""


@dataclass(frozen=True)
class Answer:
    """Status (code and phrase) and body."""

    status: bytes
    body: bytes

    def build_head(self, delay_s: float, connection: bytes = b"") -> bytes:
        """Status line and headers; `connection` is `CLOSE`, `KEEP_ALIVE` or nothing."""
        return b"HTTP/1.1 %b\r\nContent-Length: %d\r\nDelay: %.9g\r\n%b\r\n" % (
            self.status,
            len(self.body),
            delay_s,
            connection,
        )


def build_ok(body: bytes) -> Answer:
    """A proper answer."""
    return Answer(b"200 OK", body)


def build_error() -> Answer:
    """What `Fault.ERROR` answers."""
    return Answer(b"500 Internal Server Error", b"an error, as asked for by --error-rate\n")
