"""Reads the responses of one connection: their heads, their ends, and whether the connection can be reused.

All engines read with it, so that they accept and refuse the same. llhttp (by httptools) parses; where it does
not judge as RFC 9112 does, and for the limits, the head is looked at here. What was chosen where the RFC
leaves a choice is in docs/decisions/0019-one-reader-of-responses.md; tests/kit/servers/responses.py has what
follows.
"""

import re
from collections.abc import Sequence
from typing import Self

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_HEAD_BYTES = 65_536
"""All that comes before a body: blank lines, interim responses, status line and headers. A single header may
be as long (curl: 100 KiB, nginx: 8 KiB, aiohttp's own: 8 KiB)."""
MOST_HEADERS = 1000
"""Header lines of one response, interim or final (curl: 5000, nginx: 1000, aiohttp's own: 128)."""
LONGEST_FRAMING_BYTES = 65_536
"""Most bytes between two pieces of a chunked body, or after it: the size of a chunk, the trailers."""
LARGEST_BODY_BYTES = 2**40
"""Bodies are dropped as they arrive: this only ends what no honest server sends."""

_FIRST_INTERIM_STATUS = 100
_FIRST_FINAL_STATUS = 200
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (101, 204, 304)

_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
_SURELY_SHORT_BYTES = 3 * MOST_HEADERS
"""A head of this length has not too many headers, which have a name, a colon and an end of the line each."""
# Begins with a literal, so that it is searched for at the speed of memchr: most heads have nothing of it but
# their end.
_NOTABLE = re.compile(rb"\n(?:\r?\n|[ \t]|[Tt][Rr][Aa][Nn][Ss][Ff][Ee][Rr]-)")
_HEAD_END = re.compile(rb"\n\r?\n")
_BLANK_FIRST_LINE = re.compile(rb"[^\n]*\n[ \t]")
# As the parser reads them: a space before the colon, and values over several lines.
_HAS_LENGTH = re.compile(rb"\ncontent-length *:", re.IGNORECASE)
_ENCODINGS = re.compile(rb"\ntransfer-encoding *:([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.IGNORECASE)
_CONNECTIONS = re.compile(rb"\nconnection *:([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\bclose\b", re.IGNORECASE)
_REFUSED_NAME = "Invalid header token"
_BLANKS_BEFORE_COLON = re.compile(rb"(\n[!#$%&'*+\-.^_`|~0-9A-Za-z]++)([ \t]++)(:|\Z)")


class MalformedResponseError(Exception):
    """A response that is not HTTP, or has no end."""

    def without_response(self) -> Self:
        """The error without its traceback and causes, which hold the bytes of the response."""
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self


class ResponseReader:
    """Reads one response after the other; the parser calls the methods `on_…`.

    Args:
        has_bodies: whether the responses have bodies; those to HEAD have none.

    Attributes:
        has_bodies: as given, for the responses that begin after it is set.
        head: status line and headers of the response, once they are complete.
        kept_bytes: how much of a body is kept, from its beginning; nothing of it unless this is set, which
            holds for the responses that begin after it.
        body: the kept part of the body so far, as it was sent.
        status: of the response that is being read.
        received: bytes of its body so far.
        has_head: whether status line and headers are complete.
        is_complete: whether all of it has come.
        is_kept: whether the connection can be used for another one after it.
        ends_by_close: whether its body goes on until the connection closes.
    """

    __slots__ = (
        "_between",
        "_came",
        "_head_from",
        "_is_mending",
        "_is_strict",
        "_parser",
        "body",
        "ends_by_close",
        "has_bodies",
        "has_head",
        "head",
        "is_complete",
        "is_kept",
        "kept_bytes",
        "received",
        "status",
    )

    def __init__(self, *, has_bodies: bool) -> None:
        self.has_bodies = has_bodies
        self.kept_bytes = 0
        self.body = bytearray()
        self._parser: HttpResponseParser | None = None
        self._is_strict = self._is_mending = False
        self.reset()

    @property
    def has_begun(self) -> bool:
        """Whether anything of the response has come, beside interim responses before it."""
        return self.has_head or len(self._came) > self._head_from

    def reset(self) -> None:
        """Get ready for the next response."""
        self.status = self.received = self._head_from = self._between = 0
        self.is_complete = self.ends_by_close = self.has_head = False
        self.is_kept = True
        self.head = self._came = b""
        if self.kept_bytes or self.body:
            self.body = bytearray()
        if not self.has_bodies:
            self._parser = None  # it would wait for the body that was announced
        elif self._is_strict and self._parser is not None:
            self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._is_strict = self._is_mending = False

    def end(self) -> None:
        """Release the parser, which refers to this reader: there will be no other response."""
        self._parser = None

    def feed(self, data: bytes) -> None:
        """Read a piece of a response.

        Raises:
            MalformedResponseError: this is no response.
        """
        if self.has_head:
            received = self.received
        else:
            received = -1
            self._came += data
            if self._is_mending:
                data = self._mend_head()
        refusal = None
        try:
            (self._parser or self._build_parser()).feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            refusal = error
        if refusal is not None:
            self._recover(refusal)
        if not self.is_complete:
            self._check_size(len(data) if received == self.received else 0)

    def on_message_begin(self) -> None:
        """A response begins."""
        if self.is_complete:  # a response without a request
            self.is_kept = False

    def on_headers_complete(self) -> None:
        """The head of a response is complete."""
        if self.is_complete:  # of a response without a request
            return
        parser = self._parser
        assert parser is not None
        came, start = self._came, self._head_from
        while came[start] <= _CARRIAGE_RETURN:  # the parser skips blank lines before a head, too
            start += 1
        end = _NOTABLE.search(came, start).end()  # type: ignore[union-attr]  # the parser has seen one
        is_plain = came[end - 1] == _LINE_FEED
        if not is_plain:
            end = _HEAD_END.search(came, start).end()  # type: ignore[union-attr]
        head = came[start:end]
        if end > _SURELY_SHORT_BYTES or 0 in head or not head.startswith(b"HTTP/1."):
            _check_head(head, end)
        self.status = status = parser.get_status_code()
        if status < _FIRST_FINAL_STATUS and status >= _FIRST_INTERIM_STATUS:
            if status != _SWITCHING_PROTOCOLS:
                self._head_from = end
                return
            self.is_kept = False
        self.has_head = True
        self.head = head
        encodings = () if is_plain else self._read_encodings(parser, head)
        if not parser.should_keep_alive():
            has_end = not self.has_bodies or status in _WITHOUT_BODY or _has_own_end(encodings, head)
            self.ends_by_close = not has_end
            # To HEAD, the parser takes an answer without a length for one that ends by closing.
            self.is_kept = self.is_kept and not self.has_bodies and not _says_close(head)
        elif encodings and head.startswith(b"HTTP/1.0"):  # section 6.1
            self.is_kept = False
        if not self.has_bodies:
            self.is_complete = True

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        if self.is_complete:
            self.is_kept = False
        else:
            if (room := self.kept_bytes - self.received) > 0:
                self.body += body[:room]
            self.received += len(body)

    def on_message_complete(self) -> None:
        """A response is complete, or an interim one before it."""
        if self.has_head:  # else it was an interim one; that which counts is still to come
            self.is_complete = True

    def _build_parser(self) -> HttpResponseParser:
        parser = self._parser = HttpResponseParser(self)
        # Old and small servers send this, and browsers accept it. That more may follow a `Connection: close`
        # is for interim responses; what follows a final one is never used.
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_version=True,
            lenient_keep_alive=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        return parser

    def _recover(self, refusal: Exception) -> None:
        """Read on with a mended head, if blanks before a colon are why the parser refuses it.

        Raises:
            MalformedResponseError: they are not, and the response is not complete.
        """
        while self._has_blanks_before_colon(refusal):
            try:
                self._build_parser().feed_data(self._mend_head())
            except (HttpParserError, HttpParserUpgrade) as error:
                refusal = error  # of this head or, after an interim response, of the next one
            else:
                return
        self.is_kept = False
        if not self.is_complete:
            raise MalformedResponseError(str(refusal.__context__ or refusal)) from refusal

    def _has_blanks_before_colon(self, refusal: Exception) -> bool:
        """Whether the head that the parser refuses has blanks before a colon, or ends with such blanks."""
        if self.has_head or str(refusal) != _REFUSED_NAME:
            return False
        start, end = self._find_head()
        return bool(_BLANKS_BEFORE_COLON.search(self._came, start, end or len(self._came)))

    def _mend_head(self) -> bytes:
        """Move blanks before colons behind them; what the parser then has to read, once the head is complete.

        The parser accepts such blanks in the names that frame a message, and refuses them in all others.
        """
        start, end = self._find_head()
        self._is_mending = not end
        if not end:
            return b""
        came = self._came
        head = _BLANKS_BEFORE_COLON.sub(rb"\1\3\2", came[start:end])
        self._came = came[:start] + head + came[end:]
        return self._came[start:]

    def _find_head(self) -> tuple[int, int]:
        """Where the head that is being read begins and ends; its end is 0 while it is incomplete."""
        came = self._came
        start = len(came) - len(came[self._head_from :].lstrip(b"\r\n"))
        found = _HEAD_END.search(came, start)
        return start, found.end() if found else 0

    def _read_encodings(self, parser: HttpResponseParser, head: bytes) -> list[bytes]:
        """The encodings; refuses what the parser would read otherwise than RFC 9112 (2.2, 6.1 and 7) does."""
        if _BLANK_FIRST_LINE.match(head):
            raise ValueError("its first header begins with a blank")
        encodings = _list_encodings(head)
        if not all(encodings):
            raise ValueError("its Transfer-Encoding has an empty element")
        names = [encoding.partition(b";")[0].strip() for encoding in encodings]
        if names.count(b"chunked") > 1 or (names[-1:] == [b"chunked"] and encodings[-1] != b"chunked"):
            raise ValueError("its Transfer-Encoding has chunked more than once, or with a parameter")
        if encodings:  # lines that end with LF alone are for heads, not for chunks
            self._is_strict = True
            parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=False)
        return encodings

    def _check_size(self, framing: int) -> None:
        """Check the limits; `framing` of the new bytes contained no piece of the body."""
        if not self.has_head:
            if len(self._came) > LONGEST_HEAD_BYTES:
                raise MalformedResponseError(f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
        elif framing:
            self._between += framing
            if self._between > LONGEST_FRAMING_BYTES:
                raise MalformedResponseError(f"{LONGEST_FRAMING_BYTES} bytes came without any of its body")
        elif self.received > LARGEST_BODY_BYTES:
            raise MalformedResponseError(f"its body is longer than {LARGEST_BODY_BYTES} bytes")
        else:
            self._between = 0


def _check_head(head: bytes, came: int) -> None:
    """Refuse a head that is not HTTP/1 or ends beyond the limit, after `came` bytes."""
    if came > LONGEST_HEAD_BYTES:
        raise ValueError(f"its head is longer than {LONGEST_HEAD_BYTES} bytes")
    if head.count(b"\n") > MOST_HEADERS + 2:
        raise ValueError(f"it has more than {MOST_HEADERS} lines of headers")
    if 0 in head:
        raise ValueError("its head contains a NUL")
    if not head.startswith(b"HTTP/1."):
        raise ValueError("it is not HTTP/1")


def _has_own_end(encodings: Sequence[bytes], head: bytes) -> bool:
    return encodings[-1] == b"chunked" if encodings else bool(_HAS_LENGTH.search(head))


def _says_close(head: bytes) -> bool:
    return head.startswith(b"HTTP/1.0") or any(map(_CLOSE.search, _CONNECTIONS.findall(head)))


def _list_encodings(head: bytes) -> list[bytes]:
    values = b",".join(_ENCODINGS.findall(head))
    return [encoding.strip().lower() for encoding in values.split(b",")] if values else []
