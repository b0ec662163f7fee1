"""Searches the bodies of answers for a regular expression, within a bounded time of the event loop.

The time of a search is linear in the body (`oku_core.spec.values.pattern`). Nearly all searches take 1
to 8 ns per byte. At the worst, RE2 follows each instruction of a pattern at each byte, which takes 9 ns
for each of them: `(a|b)*a(a|b){14}c` takes 0.1 s for 1 MiB of a and b. So there are two limits: one on
the instructions times the bytes of a search, and one on the time that all searches for a pattern take in
excess of the usual time.
"""

import time

from oku_core.process.clock import ClockNs
from oku_core.spec.values.pattern import compile_pattern

CHECK_MATCH = "check match"
MATCH_TOO_EXPENSIVE = "check match: too expensive for a body of this length"
"""The reason of an answer in which a regular expression is not looked for."""
MOST_EXCESS_NS = 500_000_000
"""How long searches for a pattern may take in all, beyond `USUAL_NS_PER_BYTE`."""
USUAL_NS_PER_BYTE = 30

_MOST_WORK = 1 << 26
"""The most instructions times bytes of a search: 0.6 s at the worst, and 1 MiB for 64 instructions."""
_UNTIMED_WORK = 1 << 17
"""A search with so little work takes 1 ms at the worst and is not timed, for the clock takes up to 2 µs."""


class PatternCheck:
    """Whether bodies match a pattern; belongs to one target and one worker.

    A search that takes longer than usual adds to an excess; all others reduce it. Once the excess is more
    than half a second, only bodies at most half as long as the last one are searched.

    Args:
        pattern: a pattern of a spec.
        clock_ns: the processor time of this thread, which other processes do not affect.
    """

    __slots__ = ("_clock_ns", "_excess_ns", "_longest", "_longest_untimed", "_search")

    def __init__(self, pattern: str, clock_ns: ClockNs = time.thread_time_ns) -> None:
        instructions, self._search = compile_pattern(pattern)
        self._clock_ns = clock_ns
        self._longest_untimed = _UNTIMED_WORK // instructions
        self._longest = _MOST_WORK // instructions
        self._excess_ns = 0

    def find_failure(self, body: bytes) -> str | None:
        """The reason why a body fails; None if it matches.

        Args:
            body: UTF-8.
        """
        size = len(body)
        if size <= self._longest_untimed:
            found = self._search(body)
        elif size > self._longest:
            return MATCH_TOO_EXPENSIVE
        else:
            found = self._search_timed(body, size)
        return None if found else CHECK_MATCH

    def _search_timed(self, body: bytes, size: int) -> object:
        started_ns = self._clock_ns()
        found = self._search(body)
        self._excess_ns += self._clock_ns() - started_ns - size * USUAL_NS_PER_BYTE
        if self._excess_ns < 0:
            self._excess_ns = 0
        elif self._excess_ns > MOST_EXCESS_NS:
            self._longest = size // 2
        return found


def as_utf8(body: bytes) -> bytes:
    """A body with U+FFFD in place of malformed UTF-8: in RE2 such bytes match nothing, not even a dot."""
    if body.isascii():
        return body
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="replace").encode()
    return body
