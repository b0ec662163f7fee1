"""The checks of answers: the status, and further checks in a fixed order.

Checks see at most `MOST_CHECKED_BYTES` of a body, decompressed. Nothing is kept that no check needs.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from oku_core.accounting.outcome import FAILED_CHECK, OK, UNEXPECTED_STATUS
from oku_core.http_client.error_reason import explain_status
from oku_core.json_reader import JsonError, decode_answer
from oku_core.spec.target import Expectation
from oku_core.spec.values.check import JsonValue, list_codes
from oku_core.spec.values.request_content import Header
from oku_workers.engines.http.pattern_check import PatternCheck, as_utf8

MOST_CHECKED_BYTES = 1 << 20
"""How much of a body is checked."""
CHECK_WITHIN = "check within"
"""The reason of an answer that took longer than it may."""
CANNOT_UNPACK = "check body: compressed, and not as gzip or deflate"
"""The reason of an answer that cannot be looked into."""

_ENCODING = re.compile(rb"\ncontent-encoding *:[ \t]*([^\r\n]*)", re.IGNORECASE)
_ZLIB_OR_GZIP, _RAW_DEFLATE = 47, -15
"""The window sizes by which zlib knows what it is to read."""
_WINDOW_BITS = {
    b"gzip": (_ZLIB_OR_GZIP,), b"x-gzip": (_ZLIB_OR_GZIP,), b"deflate": (_ZLIB_OR_GZIP, _RAW_DEFLATE)
}  # fmt: skip
_OTHER_ENCODINGS = frozenset({b"br", b"zstd", b"compress", b"x-compress"})

_Check = tuple[str, Callable[[bytes], bool]]


class ReceivedAnswer(NamedTuple):
    """A complete answer, as it came.

    Attributes:
        status: its status.
        received: the size of its body.
        head: its status line and headers.
        body: its body, as far as it was kept.
    """

    status: int
    received: int
    head: bytes
    body: bytes


ShowAnswer = Callable[[ReceivedAnswer], None]
_show_answer: ContextVar[ShowAnswer | None] = ContextVar("show_answer", default=None)


class AnswerChecks:
    """The checks of one target, but for its statuses and its time.

    Args:
        expect: the checks.

    Attributes:
        kept_bytes: how much of a body must be kept for them; 0 if they do not look at bodies.
    """

    def __init__(self, expect: Expectation) -> None:
        self._headers = [_build_header_check(header) for header in expect.header]
        self._sizes = expect.size
        self._bodies = [_build_contains(text) for text in expect.body]
        self._patterns = [PatternCheck(pattern) for pattern in expect.match]
        self._json = expect.json
        self.kept_bytes = MOST_CHECKED_BYTES if self._bodies or self._patterns or self._json else 0

    def find_failed(self, head: bytes, body: bytes | bytearray, received: int) -> str | None:
        """The reason why an answer fails: the first of its checks that does; None if it passes them all.

        Args:
            head: its status line and headers.
            body: its body as it was sent, as far as it was kept.
            received: the size of its body, as it was sent.
        """
        for reason, passes in self._headers:
            if not passes(head):
                return reason
        if not all(bound.holds(received) for bound in self._sizes):
            return "check size"
        if not self.kept_bytes:
            return None
        content = decode_body(head, bytes(body))
        return CANNOT_UNPACK if content is None else self._find_failed_body(content)

    def _find_failed_body(self, content: bytes) -> str | None:
        for reason, passes in self._bodies:
            if not passes(content):
                return reason
        if self._patterns:
            text = as_utf8(content)
            for pattern in self._patterns:
                if failure := pattern.find_failure(text):
                    return failure
        return _find_failed_json(self._json, content) if self._json else None


class AnswerJudge:
    """Finds the outcomes of the answers to one kind of request.

    Args:
        expect: the checks.
        timeout_s: the longest time of a request.

    Attributes:
        kept_bytes: how much of a body must be kept to judge it.
        looks_inside: whether it checks more than the status of an answer.
        ok_ns: how long an answer may take to count as ok.
    """

    __slots__ = ("_checks", "_expected", "kept_bytes", "looks_inside", "ok_ns")

    def __init__(self, expect: Expectation, timeout_s: float) -> None:
        has_checks = expect.header or expect.size or expect.body or expect.match or expect.json
        self._expected = list_codes(expect.status)
        self._checks = AnswerChecks(expect) if has_checks else None
        self.looks_inside = self._checks is not None
        self.kept_bytes = self._checks.kept_bytes if self._checks else 0
        self.ok_ns = int(min(timeout_s, expect.within_s or timeout_s) * 1e9)

    def judge(self, status: int, received: int, head: bytes, body: bytes | bytearray) -> tuple[int, str]:
        """The outcome of a complete answer, unless it came too late, and why it is not ok.

        Args:
            status: its status.
            received: the size of its body, as it was sent.
            head: its status line and headers.
            body: its body as it was sent, as far as it was kept.
        """
        if status not in self._expected:
            return UNEXPECTED_STATUS, explain_status(status)
        if self._checks is not None and (reason := self._checks.find_failed(head, body, received)):
            return FAILED_CHECK, reason
        return OK, ""


class _ShowingJudge(AnswerJudge):
    """Keeps of every body as much as checks look at, and shows each answer before it is judged."""

    __slots__ = ("_show",)

    def __init__(self, expect: Expectation, timeout_s: float, show: ShowAnswer) -> None:
        super().__init__(expect, timeout_s)
        self.kept_bytes = MOST_CHECKED_BYTES
        self.looks_inside = True
        self._show = show

    def judge(self, status: int, received: int, head: bytes, body: bytes | bytearray) -> tuple[int, str]:
        """Show an answer, and judge it as all others."""
        self._show(ReceivedAnswer(status, received, head, bytes(body)))
        return super().judge(status, received, head, body)


def build_judge(expect: Expectation, timeout_s: float) -> AnswerJudge:
    """The judge of one kind of request; in `showing_answers`, one that shows them.

    Args:
        expect: the checks.
        timeout_s: the longest time of a request.
    """
    show = _show_answer.get()
    return AnswerJudge(expect, timeout_s) if show is None else _ShowingJudge(expect, timeout_s, show)


@contextmanager
def showing_answers(show: ShowAnswer) -> Iterator[None]:
    """Show the answers of the engines that are built here, as for the preview of a request."""
    token = _show_answer.set(show)
    try:
        yield
    finally:
        _show_answer.reset(token)


def _build_header_check(header: Header) -> _Check:
    name = re.escape(header.name.encode())
    find = re.compile(rb"\n%b *:[ \t]*([^\r\n]*)" % name, re.IGNORECASE).findall
    wanted = header.value.encode()
    if not wanted:
        return f"check header {header.name}", lambda head: bool(find(head))
    return f"check header {header.name}", lambda head: wanted in [value.rstrip() for value in find(head)]


def _build_contains(text: str) -> _Check:
    wanted = text.encode()
    return "check body", lambda content: wanted in content


def _find_failed_json(values: tuple[JsonValue, ...], content: bytes) -> str | None:
    try:
        document = decode_answer(content)
    except JsonError:
        return "check json: not JSON"
    return next((f"check json {value.pointer}" for value in values if not value.is_in(document)), None)


def decode_body(head: bytes, body: bytes) -> bytes | None:
    """A body without its compression; None if it cannot be read.

    Args:
        head: status line and headers of its answer.
        body: as it was sent, or the beginning of that.
    """
    found = _ENCODING.search(head)
    encoding = found[1].strip().lower() if found and body else b""
    if encoding in _OTHER_ENCODINGS:
        return None
    window_bits = _WINDOW_BITS.get(encoding)
    if window_bits is None:
        return body
    for bits in window_bits:
        try:
            return zlib.decompressobj(bits).decompress(body, MOST_CHECKED_BYTES)
        except zlib.error:
            continue
    return None
