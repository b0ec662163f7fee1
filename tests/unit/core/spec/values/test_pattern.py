import time
from collections.abc import Callable

import pytest

from oku_core.spec.values.pattern import (
    MOST_PATTERN_CHARACTERS,
    PatternError,
    compile_pattern,
    parse_patterns,
)

MIB = 1 << 20

FOUND = [
    ("[0-9]+ items", b"12 items"), ("(?i)ORDER", b'{"order": 1}'), ("^.$", "ä".encode()),
    ("(?s)a.b", b"a\nb"), ("(?m)^b$", b"a\nb"), ("x", b"\xff\xfex"), ("", b""), (r"ok\z", b"ok"),
    (r"\Qa.b\E", b"a.b"), (r"\p{Greek}", "µλ".encode()), ("[[a]", b"["), (r"\{,3}", b"{,3}"),
    (r"\101\012", b"A\n"), ("(?P<name>a)", b"a"),
    (r"^[\w\x{80}-\x{10ffff}]+\n?$", "Müller\n".encode()),
]  # fmt: skip
NOT_FOUND = [
    ("^ok$", b"not ok"),
    ("^ok$", b"ok\n"),
    ("[äö]", "ü".encode()),
    ("a.b", b"a\nb"),
    (r"\d", "١٢".encode()),
    (r"\w", "é".encode()),
    ("M.ller", b"M\xfcller"),
]


def test_a_pattern_is_looked_for_anywhere_in_a_body_of_utf_8() -> None:
    """Letters are compared, not their bytes; classes are those of ASCII, and $ is the very end."""
    for pattern, body in FOUND:
        assert compile_pattern(pattern).search(body), pattern
    for pattern, body in NOT_FOUND:
        assert not compile_pattern(pattern).search(body), pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing ): ("),
        ("[", "missing ]: ["),
        ("*", "no argument for repetition operator: *"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("(a{100}){11}", "invalid repetition size: {11}"),
        ("(?=a)", "lookahead is not supported"),
        ("(?!a)", "lookahead is not supported"),
        ("(?<=a)", "lookbehind is not supported"),
        ("(?<!a)", "lookbehind is not supported"),
        (r"(a)\1", "back-references are not supported"),
        (r"(a)\12", "back-references are not supported"),
        ("(?P<x>a)(?P=x)", "back-references are not supported"),
        ("(?>a)", "atomic groups are not supported"),
        ("(a)?(?(1)b|c)", "conditionals are not supported"),
        ("(?#why)a", "comments are not supported"),
        ("a++", "bad repetition operator: ++"),
        ("a{,3}", "{,3} is not supported, write {0,3}"),
        (r"a\Z", r"\Z is not supported, write \z"),
        (r"\u20ac", r"\u is not supported, write \x{20ac}"),
        ("(?x) a", "invalid perl operator: (?x"),
        ("(?\n)", r"'invalid perl operator: (?\n'"),
        (r"\ä", r"invalid escape sequence: \ä"),
        (r"\p{L}{50}", "it is too large; use smaller repetition counts or fewer Unicode classes"),
        (r"\p{L}{1000}", "it is too large; use smaller repetition counts or fewer Unicode classes"),
        (r"\p{L}" * 190, "it is too large; use smaller repetition counts or fewer Unicode classes"),
    ],
)
def test_what_re2_does_not_support_is_refused_in_one_line(
    pattern: str, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The line names the reason and, if there is one, what to write instead; RE2 itself prints nothing."""
    with pytest.raises(PatternError, match=r"is not a regular expression of RE2: ") as caught:
        compile_pattern(pattern)
    assert str(caught.value).endswith(f": {why}")
    assert str(caught.value).isprintable()
    assert capfd.readouterr() == ("", "")


def test_deep_nesting_and_long_patterns_are_refused_or_compiled() -> None:
    """It crashes no process."""
    for opened, closed in (("(", ")"), ("(?:", "a)*"), ("(", "a)?"), ("[", "]")):
        half = MOST_PATTERN_CHARACTERS // len(opened + closed)
        try:
            compile_pattern(opened * half + closed * half)
        except PatternError as error:
            assert str(error).isprintable()  # noqa: PT017  # either way is fine
    # A pattern has a maximum length. A longer one is refused before it is compiled.
    longest = "a" * MOST_PATTERN_CHARACTERS
    assert parse_patterns(longest) == (longest,)
    for written in (longest + "a", ["x", longest + "a"], "(a|b)" * 170_000):
        with pytest.raises(ValueError, match=r"is longer than 1000 characters$"):
            parse_patterns(written)
    # Patterns are one or a list. A number counts as text, as it does as a flag.
    assert parse_patterns("ok") == ("ok",)
    assert parse_patterns(["ok", 5]) == ("ok", "5")


def test_no_search_takes_more_than_linear_time() -> None:
    """Ten times the body takes less than 30 times the time, even if backtracking would take for ever."""
    worst = [
        ("(a+)+$", "a", "b"),
        ("(a|aa)+$", "a", "b"),
        ("(x+x+)+y", "x", "x"),
        ("(.*)(.*)(.*)(.*)(.*)[^ab]", "ab", "a"),
        ("(?:a?){40}a{40}b", "a", "c"),
        ("(a|b)*a(a|b){9}c", "abba", "d"),
    ]
    for pattern, filling, end in worst:
        search = compile_pattern(pattern).search
        small, large = (
            _measure_s(search, (filling * (size // len(filling)) + end).encode()) for size in (MIB // 10, MIB)
        )
        assert large < 30 * max(small, 0.001), pattern


def _measure_s(search: Callable[[bytes], object], body: bytes) -> float:
    taken_s = []
    for _ in range(3):
        started = time.thread_time()
        assert not search(body)
        taken_s.append(time.thread_time() - started)
    return min(taken_s)
