"""Reads the responses of one connection: where one ends, what it says, whether the connection can go on.

llhttp (by httptools) does the reading. What it does not tell is looked up in the head: whether a body goes on
until the connection closes.
"""

import re

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_HEAD_BYTES = 65_536
"""Status line and headers of a response, and of all interim ones before it; more makes no sense."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they come: this only ends what no honest server sends."""

_FIRST_FINAL_STATUS = 200
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (101, 204, 304)

# As the parser reads them: a space before the colon, and values over several lines.
_HAS_LENGTH = re.compile(
    rb"\r\n(?:content-length *:|transfer-encoding *:(?:[^\r]|\r\n[ \t])*\bchunked\b)", re.IGNORECASE
)
_SAYS_CLOSE = re.compile(rb"\AHTTP/1\.0|\r\nconnection *:(?:[^\r]|\r\n[ \t])*\bclose\b", re.IGNORECASE)


class MalformedResponseError(Exception):
    """What came is no HTTP, or has no end."""


class ResponseReader:
    """See the module. `on_…` are for the parser.

    Args:
        has_bodies: whether the responses have bodies; those to HEAD have none.

    Attributes:
        status: of the response that is being read.
        received: bytes of its body so far.
        is_complete: whether all of it has come.
        is_kept: whether the connection can be used for another one after it.
        ends_by_close: whether its body goes on until the connection closes.
    """

    __slots__ = (
        "_has_bodies",
        "_has_head",
        "_head",
        "_head_from",
        "_parser",
        "ends_by_close",
        "is_complete",
        "is_kept",
        "received",
        "status",
    )

    def __init__(self, *, has_bodies: bool) -> None:
        self._has_bodies = has_bodies
        self._parser: HttpResponseParser | None = None
        self.begin()

    def begin(self) -> None:
        """The next response will be another one."""
        self.status = self.received = self._head_from = 0
        self.is_complete = self.ends_by_close = self._has_head = False
        self.is_kept = True
        self._head = b""
        if not self._has_bodies:
            self._parser = None  # it waits for the body that was announced

    def end(self) -> None:
        """There will be no other: let go of the parser, which refers to this reader."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Read a piece of a response; `MalformedResponseError` when no response can come of it."""
        if not self._has_head:
            self._head = (self._head + data).lstrip(b"\r\n")  # the parser takes no notice of these either
        try:
            self._find_parser().feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.is_kept = False
            if not self.is_complete:
                raise MalformedResponseError(str(error.__context__ or error)) from error
        if self.is_complete:
            return
        if not self._has_head and len(self._head) > LONGEST_HEAD_BYTES:
            raise MalformedResponseError(f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
        if self.received > LARGEST_BODY_BYTES:
            raise MalformedResponseError(f"its body is longer than {LARGEST_BODY_BYTES} bytes")

    def on_message_begin(self) -> None:
        """A response begins."""
        if self.is_complete:  # nobody asked for this one
            self.is_kept = False

    def on_headers_complete(self) -> None:
        """The head of a response is complete."""
        if self.is_complete:  # of one that nobody asked for
            return
        assert self._parser is not None
        self.status = status = self._parser.get_status_code()
        self._has_head = True
        if len(self._head) > LONGEST_HEAD_BYTES and len(self._cut_head()) > LONGEST_HEAD_BYTES:
            raise ValueError(f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
        if status < _FIRST_FINAL_STATUS and status != _SWITCHING_PROTOCOLS:
            return
        if not self._parser.should_keep_alive():
            head = self._cut_head()
            has_end = not self._has_bodies or status in _WITHOUT_BODY or bool(_HAS_LENGTH.search(head))
            self.ends_by_close = not has_end
            # To HEAD, the parser takes an answer without a length for one that ends by closing.
            self.is_kept = not self._has_bodies and not _SAYS_CLOSE.search(head)
        if not self._has_bodies:
            self.is_complete = True

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        if self.is_complete:
            self.is_kept = False
        else:
            self.received += len(body)

    def on_message_complete(self) -> None:
        """A response is complete."""
        if self.status >= _FIRST_FINAL_STATUS:
            self.is_complete = True
        elif self.status == _SWITCHING_PROTOCOLS:
            self.is_complete, self.is_kept = True, False
        else:  # an interim response; the one that counts is still to come
            self._has_head = False
            self._head_from = self._head.find(b"\r\n\r\n", self._head_from) + 4

    def _find_parser(self) -> HttpResponseParser:
        if self._parser is None:
            self._parser = HttpResponseParser(self)
            # Values with control characters come from servers that people use; browsers take them.
            self._parser.set_dangerous_leniencies(lenient_headers=True)
        return self._parser

    def _cut_head(self) -> bytes:
        return self._head[self._head_from : self._head.find(b"\r\n\r\n", self._head_from)]
