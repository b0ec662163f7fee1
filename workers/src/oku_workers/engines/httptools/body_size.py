"""Measures the body of an answer of a known shape; `speedups/shape.c` is the same, compiled.

Both give the same result for any bytes: the length of the body, or -1 for no whole answer of the shape.
"""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from oku_core.http_client.response_reader import LONGEST_HEAD_BYTES
from oku_workers.speedups.extension import IS_COMPILED

if IS_COMPILED:
    from oku_workers.speedups import _speedups

Line = tuple[int, bytes]
"""The shape of the status line or of a header: its kind, and the bytes that it begins with. With `FIXED` they
are all of it; with `VALUE` anything follows that a value may be, with `LENGTH` the length of the body."""
FIXED, VALUE, LENGTH = range(3)
Measure = Callable[[bytes], int]
"""Gives the size of the body of an answer; -1 if it is not a whole one of this shape, and nothing else."""


class Shape(Protocol):
    """Answers with the same status line and the same headers in the same order, and any values."""

    @property
    def status(self) -> int:
        """Of all of them."""
        ...

    @property
    def measure(self) -> Measure:
        """Gives the size of the body of such an answer; -1 if it is not a whole one, and nothing else."""
        ...


LINE_END = b"\r\n"
_VALUE = rb"(?=[^\r]*+\r\n).*"
"""Anything but line breaks: two scans for one character each are faster than one for a set of them. NUL is
looked for afterwards."""
_LENGTH_VALUE = rb"[ \t]*(0|[1-9][0-9]{0,9})[ \t]*"
_PATTERNS = {FIXED: b"", VALUE: _VALUE + LINE_END, LENGTH: _LENGTH_VALUE + LINE_END}
_SIZE = rb"([0-9a-fA-F]{1,8})\r\n"
_CHUNK_SIZE = re.compile(_SIZE)
_AFTER_ONLY_CHUNK = b"\r\n0\r\n\r\n"
_OFTEN = 1_000
"""The common first lines are determined again after this number of answers."""


def has_chunks(shape: Sequence[Line]) -> bool:
    """Whether the bodies of answers of this shape come in chunks; else one of its lines has their length."""
    return LENGTH not in dict(shape)


def build_measure(  # noqa: C901  # three functions that share what they know
    shape: Sequence[Line],
) -> Measure:
    """The measure of answers with these lines. As a function that has all at hand it takes a third less time.

    Answers that follow each other mostly begin with the same lines, byte for byte: the date among them
    changes once a second. Only what comes behind those lines is matched.

    Args:
        shape: of the status line and each header.
    """
    is_chunked = has_chunks(shape)
    lines = [re.escape(text) + _PATTERNS[kind] for kind, text in shape]
    lines.append(LINE_END + (_SIZE if is_chunked else b""))
    head, start, fixed_size = b"", 0, -1
    """These lines, where they end, and the length of the body if one of them says it; else -1."""
    compiled = [re.compile(line) for line in lines]
    matches = {0: re.compile(b"".join(lines)).match}
    """By a number of lines, the function that matches the rest."""
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
    pieces = find_chunks(answer, start)
    return -1 if pieces is None else sum([stop - begin for begin, stop in pieces])


def find_chunks(answer: bytes, start: int) -> Sequence[tuple[int, int]] | None:
    """Where the pieces of a chunked body lie that goes on until the end of an answer; the last one is empty.

    None if it does not, or has anything but sizes and pieces.
    """
    pieces: list[tuple[int, int]] = []
    match, stop = _CHUNK_SIZE.match, len(answer)
    while (found := match(answer, start)) is not None:
        begin = found.end()
        start = begin + int(found[1], 16)
        pieces.append((begin, start))
        if start + 2 > stop or answer[start : start + 2] != LINE_END:
            return None
        start += 2
        if pieces[-1][0] == pieces[-1][1]:
            return pieces if start == stop else None
    return None


class PythonShape:
    """A `Shape` in Python.

    Args:
        lines: the shape of the status line and of each header.
        status: of all such answers.
    """

    __slots__ = ("measure", "status")

    def __init__(self, lines: Sequence[Line], status: int) -> None:
        self.status = status
        self.measure = build_measure(lines)


def build_compiled_shape(lines: Sequence[Line], status: int) -> Shape:
    """The same as `PythonShape`, compiled."""
    return _speedups.Shape(tuple(lines), status, LONGEST_HEAD_BYTES)


build_shape: Callable[[Sequence[Line], int], Shape] = build_compiled_shape if IS_COMPILED else PythonShape
"""Makes the shape of some lines and a status."""
