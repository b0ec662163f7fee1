"""Recognises an answer that is like one that was read before, but for its values.

Most targets answer in few shapes: the same status line, the same headers in the same order, framed in the
same way, with other dates, ids and bodies. A pattern is made of an answer that the strict reader has taken.
It matches only what that reader would take, too, and read in the same way: names and whatever frames a
message or says what becomes of its connection are those of the first, byte for byte; all else may be anything
that a value may be. What no pattern matches is read by the reader.
"""

import re
from collections.abc import Sequence

from oku_workers.engines.httptools import body_size
from oku_workers.engines.httptools.body_size import (
    FIXED,
    LENGTH,
    LINE_END,
    VALUE,
    Line,
    find_chunks,
    has_chunks,
)

MOST_PATTERNS = 4
"""The most patterns of one kind of request; answers of other shapes are read."""

_STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3})(?: [^\r\n\0]*)?\r\n")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\r\n\0]*)\r\n")
_WITHOUT_BODY = frozenset({*range(200), 204, 304})
_LENGTH, _ENCODING = b"content-length", b"transfer-encoding"
_FIXED = frozenset(
    {
        _ENCODING,
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"upgrade",
        b"trailer",
        b"content-encoding",
    }
)
"""Headers whose values must not differ from the first answer: they frame it, or manage its connection."""
_HEAD_END = b"\r\n\r\n"


class ResponsePattern:
    """Answers of one shape; `learn_pattern` makes it.

    Args:
        lines: the shape of the status line and of each header.
        status: of all of them.

    Attributes:
        shape: measures them.
        status: as given.
        measure: measures the body of an answer of the shape.
    """

    __slots__ = ("_is_chunked", "measure", "shape", "status")

    def __init__(self, lines: Sequence[Line], status: int) -> None:
        self._is_chunked = has_chunks(lines)
        self.shape = body_size.build_shape(lines, status)
        self.status = status
        self.measure = self.shape.measure

    def take_apart(self, answer: bytes) -> tuple[bytes, bytes]:
        """Head and body of an answer that this has measured."""
        start = answer.index(_HEAD_END) + len(_HEAD_END)
        if not self._is_chunked:
            return answer[:start], answer[start:]
        pieces = find_chunks(answer, start) or ()
        return answer[:start], b"".join([answer[begin:stop] for begin, stop in pieces])


def learn_pattern(answer: bytes) -> ResponsePattern | None:
    """The pattern of an answer; None if answers of its shape had better be read.

    Args:
        answer: a whole one to a request other than HEAD that the reader has taken, after which its connection
            could be used again.
    """
    found = _STATUS_LINE.match(answer)
    if found is None or (status := int(found[1])) in _WITHOUT_BODY:
        return None
    lines, framing, start = [(FIXED, found[0])], [], found.end()
    while (header := _HEADER.match(answer, start)) is not None:
        name, start = header[1].lower(), header.end()
        if name == _LENGTH:
            framing.append(_LENGTH)
            lines.append((LENGTH, header[1] + b":"))
        elif name in _FIXED:
            if name == _ENCODING:
                framing.append(header[2].strip(b" \t").lower())
            lines.append((FIXED, header[0]))
        else:
            lines.append((VALUE, header[1] + b":"))
    if answer[start : start + 2] != LINE_END or framing not in ([_LENGTH], [b"chunked"]):
        return None
    pattern = ResponsePattern(lines, status)
    return pattern if pattern.measure(answer) >= 0 else None
