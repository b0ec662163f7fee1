"""Reads requests from the bytes of one connection, with the parser of httptools (llhttp).

Each request is counted as soon as its head is complete, and handed on when all of it has arrived; its body is
dropped. A request that cannot be read is refused. Nothing is read after a refusal, nor after a request that
closes its connection.
"""

from collections import deque
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from oku_core.spec.values.delay import DELAY_HEADER, RUN_HEADER, SEED_HEADER
from oku_server.behaviour.planner import NO_OVERRIDES, Overrides, OverridesError, find_name, parse_overrides
from oku_server.counts.count_table import NO_RUN, CountTable
from oku_server.http.planned_response import CLOSE, KEEP_ALIVE

ADMIN_PREFIX = b"-/"
"""Requests for names with this prefix are for the server itself; they are neither counted nor delayed."""
LONGEST_HEAD_BYTES = 65_536
"""The limit for target, headers and trailers of a request, and for bytes that are neither these nor body."""

_RUN, _DELAY, _SEED = (name.lower().encode() for name in (RUN_HEADER, DELAY_HEADER, SEED_HEADER))
_BAD_REQUEST = b"400 Bad Request"
_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_SLOW = b"408 Request Timeout"


class Request(NamedTuple):
    """A request, as far as the server needs it.

    Attributes:
        target: the target in its first line.
        name: the name in its target.
        is_head: whether its method is HEAD.
        connection: the header of its response about the connection: `CLOSE`, `KEEP_ALIVE` or nothing.
        overrides: the delay and the seed that it asks for.
        refusal: the status with which it is refused, if it is.
        reason: the reason for the refusal in one line, if the status alone is not enough.
    """

    target: bytes
    name: bytes
    is_head: bool
    connection: bytes
    overrides: Overrides = NO_OVERRIDES
    refusal: bytes = b""
    reason: bytes = b""


class HeadTooLargeError(Exception):
    """A head is longer than `LONGEST_HEAD_BYTES`."""


class RequestReader:
    """Reads the requests of one connection.

    Attributes:
        requests: the complete requests, in order; the connection removes those that it responds to.
        run: the run that the last head named.
        overrides: the overrides of the last head.
        is_partial: whether a request has begun and is not complete.
        is_over: whether the reader has stopped reading for good.
        must_continue: whether the client waits for `100 Continue` before it sends the body.
    """

    __slots__ = (
        "_counts",
        "_delay",
        "_hosts",
        "_parser",
        "_request",
        "_seed",
        "_size",
        "_target",
        "_unaccounted",
        "is_over",
        "is_partial",
        "must_continue",
        "overrides",
        "requests",
        "run",
    )  # fmt: skip

    def __init__(self, counts: CountTable) -> None:
        self.requests: deque[Request] = deque()
        self.run, self.overrides = NO_RUN, NO_OVERRIDES
        self.is_partial = self.is_over = self.must_continue = False
        self._counts = counts
        self._unaccounted = 0
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self.on_message_begin()
        self.is_partial = False

    def feed(self, data: bytes) -> None:
        """Read more bytes; complete requests are added to `requests`."""
        self._unaccounted += len(data)
        while data and not self.is_over:
            assert self._parser is not None
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                # An upgrade that a client offers need not be accepted: the connection goes on as it was.
                data = data[upgrade.args[0] :]
            except HttpParserError as error:
                cause = error.__context__
                if isinstance(cause, OverridesError):
                    self._refuse(_BAD_REQUEST, str(cause).encode())
                else:
                    self._refuse(_TOO_LARGE if isinstance(cause, HeadTooLargeError) else _BAD_REQUEST)
            else:
                break
        if self._unaccounted > LONGEST_HEAD_BYTES and self.is_partial and not self.is_over:
            self._refuse(_TOO_LARGE)

    @property
    def is_in_body(self) -> bool:
        """Whether the head of the partial request is complete."""
        return self._request is not None

    def refuse_slow(self) -> None:
        """Refuse the partial request because its sender takes too long."""
        self._refuse(_TOO_SLOW)

    def close(self) -> None:
        """Read nothing more and forget everything."""
        self.requests.clear()
        self.is_over = True
        self._parser = None  # the parser refers to this reader, which would make a cycle

    def on_message_begin(self) -> None:
        """Called by the parser when a request begins."""
        self.is_partial = True
        self.run, self.overrides = NO_RUN, NO_OVERRIDES
        self._target = b""
        self._delay: bytes | None = None
        self._seed: bytes | None = None
        self._size = self._hosts = 0
        self._request: Request | None = None
        self.must_continue = False

    def on_url(self, piece: bytes) -> None:
        """Called by the parser with a piece of the target."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser with a header or, after the body, a trailer."""
        self._size += len(name) + len(value)
        if self._size > LONGEST_HEAD_BYTES:
            raise HeadTooLargeError
        if self._request is not None:
            return
        if len(name) == len(_RUN) and name.lower() == _RUN:
            self.run = self.run or value.strip().decode("latin-1")
        elif len(name) == 4 and name.lower() == b"host":
            self._hosts += 1
        elif len(name) == 6 and name.lower() == b"expect":
            self.must_continue = value.strip().lower() == b"100-continue"
        elif len(name) == len(_DELAY) and name.lower() == _DELAY:
            self._delay = _take_once(DELAY_HEADER, self._delay, value)
        elif len(name) == len(_SEED) and name.lower() == _SEED:
            self._seed = _take_once(SEED_HEADER, self._seed, value)

    def on_headers_complete(self) -> None:
        """Called by the parser when the head is complete."""
        parser = self._parser
        assert parser is not None
        if self._size + len(self._target) > LONGEST_HEAD_BYTES:
            raise HeadTooLargeError
        self._unaccounted = 0
        is_old = parser.get_http_version() != "1.1"
        if self._hosts > 1 or not (self._hosts or is_old):
            raise ValueError("a request needs one Host (RFC 9112, section 3.2)")
        connection = (KEEP_ALIVE if is_old else b"") if parser.should_keep_alive() else CLOSE
        self.must_continue &= not is_old
        name = find_name(self._target)
        self.overrides = parse_overrides(self._delay, self._seed)
        self._request = Request(
            self._target, name, parser.get_method() == b"HEAD", connection, self.overrides
        )
        if not name.startswith(ADMIN_PREFIX):
            self._counts.add(self.run)

    def on_body(self, _piece: bytes) -> None:
        """Called by the parser with a piece of the body."""
        self._unaccounted = 0

    def on_message_complete(self) -> None:
        """Called by the parser when the request is complete."""
        assert self._request is not None
        self.is_partial = self.must_continue = False
        self.requests.append(self._request)
        self.is_over = self._request.connection == CLOSE

    def _refuse(self, status: bytes, reason: bytes = b"") -> None:
        # After a request that closes its connection, the parser takes any further byte for an error.
        if not self.is_over:
            self.is_over = True
            self.requests.append(
                Request(b"", b"", is_head=False, connection=CLOSE, refusal=status, reason=reason)
            )


def _take_once(name: str, before: bytes | None, value: bytes) -> bytes:
    if before is not None:
        raise OverridesError(f"{name}: is given twice")
    return value.strip()
