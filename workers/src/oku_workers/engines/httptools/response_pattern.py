"""Recognises an answer that is like one that was read before, but for its values.

Most targets answer in few shapes: the same status line, the same headers in the same order, framed in the
same way, with other dates, ids and bodies. A pattern is made of an answer that the strict reader has taken.
It matches only what that reader would take, too, and read in the same way: names and whatever frames a
message or says what becomes of its connection are those of the first, byte for byte; all else may be anything
that a value may be. What no pattern matches is read by the reader.
"""

import re
from collections.abc import Callable, Sequence

from oku_core.http_client.limits import LONGEST_HEAD_BYTES

MOST_PATTERNS = 4
"""So many are made for one kind of request; a target with more shapes has the rest read."""

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
"""Headers whose values are those of the first answer: they say how to read it, or what follows."""
_VALUE = rb"(?=[^\r]*+\r\n).*"
"""Anything but line breaks: two scans for one character each are faster than one for a set of them. NUL is
looked for afterwards."""
_LENGTH_VALUE = rb"[ \t]*(0|[1-9][0-9]{0,9})[ \t]*"
_SIZE = rb"([0-9a-fA-F]{1,8})\r\n"
_CHUNK_SIZE = re.compile(_SIZE)
_LINE_END = b"\r\n"
_AFTER_ONLY_CHUNK = b"\r\n0\r\n\r\n"
_OFTEN = 1_000
"""After so many answers it is found anew which lines they begin with."""


class ResponsePattern:
    """Answers of one shape; `learn_pattern` makes it.

    Args:
        lines: the shape of the status line, of each header and of the end of the head; what one of them has
            in brackets is the length of the body. With chunks the last one goes on to the size of the first.
        status: of all of them.
        is_chunked: whether their bodies come in chunks, and not with a length.

    Attributes:
        status: as given.
        measure: gives the size of the body of an answer; -1 if it is not a whole one of this shape, and
            nothing else.
    """

    __slots__ = ("_is_chunked", "_match", "measure", "status")

    def __init__(self, lines: Sequence[bytes], status: int, *, is_chunked: bool) -> None:
        self._match = re.compile(b"".join(lines)).match
        self._is_chunked = is_chunked
        self.status = status
        self.measure = _build_measure(lines, is_chunked=is_chunked)

    def take_apart(self, answer: bytes) -> tuple[bytes, bytes]:
        """Head and body of an answer that this has measured."""
        found = self._match(answer)
        assert found is not None
        if not self._is_chunked:
            return answer[: found.end()], answer[found.end() :]
        start = found.start(1)
        pieces = _find_chunks(answer, start) or ()
        return answer[:start], b"".join([answer[begin:stop] for begin, stop in pieces])


def _build_measure(  # noqa: C901  # three functions that share what they know
    lines: Sequence[bytes], *, is_chunked: bool
) -> Callable[[bytes], int]:
    """The measure of a pattern. As a function that has all at hand it takes a third less time.

    Answers that follow each other mostly begin with the same lines, byte for byte: the date among them
    changes once a second. Only what comes behind those lines is matched.
    """
    head, start, fixed_size = b"", 0, -1
    """These lines, where they end, and the length of the body if one of them says it; else -1."""
    compiled = [re.compile(line) for line in lines]
    matches = {0: re.compile(b"".join(lines)).match}
    """What matches the rest behind so many lines."""
    match = matches[0]
    left, before = _OFTEN, b""
    """So many answers go by until the lines are found anew; the first of the two that are compared then."""

    def measure(answer: bytes) -> int:
        nonlocal left
        if not answer.startswith(head):
            keep_common(head, answer)
        if (found := match(answer, start)) is None:
            return -1
        head_end = found.start(1) if is_chunked else found.end()
        if head_end > LONGEST_HEAD_BYTES or (0 in answer and answer.find(0, 0, head_end) >= 0):
            return -1
        if is_chunked:  # most bodies have one chunk and the last
            begin, size = found.end(), int(found[1], 16)
            if not size or answer[begin + size :] != _AFTER_ONLY_CHUNK:
                size = _measure_chunks(answer, head_end)
        else:
            size = len(answer) - head_end
            if size != fixed_size and (fixed_size >= 0 or size != int(found[1])):
                size = -1
        left -= 1
        if left <= 0 <= size:
            find_anew(answer[:head_end])
        return size

    def find_anew(answer_head: bytes) -> None:
        nonlocal left, before
        if before:
            keep_common(before, answer_head)
            left, before = _OFTEN, b""
        else:
            before = answer_head

    def keep_common(one: bytes, other: bytes) -> None:
        """Keep the lines that both begin with."""
        nonlocal head, start, fixed_size, match
        count, start, fixed_size = _find_common(compiled, one, other)
        if count not in matches:
            matches[count] = re.compile(b"".join(lines[count:])).match
        head, match = other[:start], matches[count]

    return measure


def _find_common(lines: "Sequence[re.Pattern[bytes]]", one: bytes, other: bytes) -> tuple[int, int, int]:
    """What two answers begin with; the first of them is of this shape, or is the beginning of one that is.

    Returns:
        How many lines, but not the last one; of how many bytes; the length of the body that they say, or -1.
    """
    start, size = 0, -1
    for count, line in enumerate(lines[:-1]):
        found = line.match(one, start)
        if found is None or other[start : found.end()] != found[0]:
            return count, start, size
        start = found.end()
        if found.lastindex:
            size = int(found[1])
    return len(lines) - 1, start, size


def _measure_chunks(answer: bytes, start: int) -> int:
    """The size of a body that begins at `start`; -1 if it has anything but sizes and pieces."""
    pieces = _find_chunks(answer, start)
    return -1 if pieces is None else sum([stop - begin for begin, stop in pieces])


def learn_pattern(answer: bytes) -> ResponsePattern | None:
    """The pattern of an answer; None if answers of its shape had better be read.

    Args:
        answer: a whole one to a request other than HEAD that the reader has taken, after which its connection
            could be used again.
    """
    found = _STATUS_LINE.match(answer)
    if found is None or (status := int(found[1])) in _WITHOUT_BODY:
        return None
    parts, framing, start = [re.escape(found[0])], [], found.end()
    while (header := _HEADER.match(answer, start)) is not None:
        name, start = header[1].lower(), header.end()
        if name == _LENGTH:
            framing.append(_LENGTH)
            parts.append(re.escape(header[1]) + b":" + _LENGTH_VALUE + _LINE_END)
        elif name in _FIXED:
            if name == _ENCODING:
                framing.append(header[2].strip(b" \t").lower())
            parts.append(re.escape(header[0]))
        else:
            parts.append(re.escape(header[1]) + b":" + _VALUE + _LINE_END)
    if answer[start : start + 2] != _LINE_END or framing not in ([_LENGTH], [b"chunked"]):
        return None
    is_chunked = framing == [b"chunked"]
    parts.append(_LINE_END + (_SIZE if is_chunked else b""))
    pattern = ResponsePattern(parts, status, is_chunked=is_chunked)
    return pattern if pattern.measure(answer) >= 0 else None


def _find_chunks(answer: bytes, start: int) -> Sequence[tuple[int, int]] | None:
    """Where the pieces of a chunked body lie that goes on until the end of an answer; the last one is empty.

    None if it does not, or has anything but sizes and pieces.
    """
    pieces: list[tuple[int, int]] = []
    match, stop = _CHUNK_SIZE.match, len(answer)
    while (found := match(answer, start)) is not None:
        begin = found.end()
        start = begin + int(found[1], 16)
        pieces.append((begin, start))
        if start + 2 > stop or answer[start : start + 2] != _LINE_END:
            return None
        start += 2
        if pieces[-1][0] == pieces[-1][1]:
            return pieces if start == stop else None
    return None
