from oku_workers.engines.http.pattern_check import (
    CHECK_MATCH,
    MATCH_TOO_EXPENSIVE,
    MOST_EXCESS_NS,
    USUAL_NS_PER_BYTE,
    PatternCheck,
    as_utf8,
)

MIB = 1 << 20


class Clock:
    """The time of a processor, of which every search takes as much as a test says."""

    def __init__(self) -> None:
        self.search_ns = 0
        self._now_ns = 0
        self._is_before = False

    def __call__(self) -> int:
        """The time before a search, and then the time after it."""
        self._is_before = not self._is_before
        if not self._is_before:
            self._now_ns += self.search_ns
        return self._now_ns


def test_an_expensive_pattern_is_searched_for_only_in_shorter_bodies() -> None:
    """This holds however fast it was before. Bodies up to half as long are searched as before."""
    clock = Clock()
    check = PatternCheck("b", clock)
    long = b"b" * MIB
    assert [check.find_failure(long) for _ in range(100)] == [None] * 100
    clock.search_ns = MOST_EXCESS_NS // 2 + MIB * USUAL_NS_PER_BYTE
    assert [check.find_failure(long) for _ in range(3)] == [None, None, None]
    assert check.find_failure(long) == MATCH_TOO_EXPENSIVE
    assert check.find_failure(b"b" * (MIB // 2 + 1)) == MATCH_TOO_EXPENSIVE
    clock.search_ns = 1000
    assert check.find_failure(b"b" * (MIB // 2)) is None
    assert check.find_failure(b"b") is None
    # Searches that are fast make up for one that was not.
    clock = Clock()
    check = PatternCheck("b", clock)
    body = b"b" * MIB
    for _ in range(10):
        clock.search_ns = MOST_EXCESS_NS // 2
        assert check.find_failure(body) is None
        clock.search_ns = 2 * MIB
        assert [check.find_failure(body) for _ in range(20)] == [None] * 20


def test_bodies_of_any_length_are_searched() -> None:
    """Short ones are not timed."""
    check = PatternCheck("b.d")
    for size in (3, 1000, MIB):
        body = b"a" * (size - 3)
        assert check.find_failure(body + b"bcd") is None
        assert check.find_failure(body + b"bcc") == CHECK_MATCH
    # A long program is not run over a long body.
    check = PatternCheck("a[ab]{1000}c", Clock())
    assert check.find_failure(b"b" * MIB) == MATCH_TOO_EXPENSIVE
    assert check.find_failure(b"b" * 50_000) == CHECK_MATCH
    assert (
        PatternCheck(r'"total": *[0-9]+, *"status": *"(ok|queued)"').find_failure(b"b" * MIB) == CHECK_MATCH
    )
    # What is not utf 8 becomes a character. Other bodies stay as they are.
    for body in (b"", b"abc", "äöü€😀".encode(), b"\0"):
        assert as_utf8(body) is body
    assert as_utf8(b"a\xffb") == "a\N{REPLACEMENT CHARACTER}b".encode()
    assert as_utf8("ä".encode()[:1]) == "\N{REPLACEMENT CHARACTER}".encode()
