"""Regular expressions of RE2 that a body must match, as users write them.

RE2 never backtracks: with any pattern, the time of a search is linear in the body. A spec holds patterns as
text; the process that searches compiles them.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from oku_core.errors import format_value
from oku_core.spec.values.scalar import list_given, parse_scalar

MOST_PATTERNS = 100
"""How many different patterns a spec may have, including its targets."""
MOST_PATTERN_CHARACTERS = 1_000
_MOST_INSTRUCTIONS = 4_096
"""The longest program; counted repetitions and Unicode classes turn short patterns into long programs."""
_MOST_MEMORY_BYTES = 1 << 20
"""For the program of a pattern and for the states that RE2 caches."""
_ESCAPE_OR_REPETITION = re.compile(r"\\[0-7]{3}|\\[1-9][0-9]|\\.|\{,[0-9]+\}", re.DOTALL)
_TOO_LARGE = "it is too large; use smaller repetition counts or fewer Unicode classes"
_UNSUPPORTED = {
    "(?=": "lookahead is not supported",
    "(?!": "lookahead is not supported",
    "(?<=": "lookbehind is not supported",
    "(?<!": "lookbehind is not supported",
    "(?P": "back-references are not supported",
    "(?>": "atomic groups are not supported",
    "(?(": "conditionals are not supported",
    "(?#": "comments are not supported",
    "pattern too large - compile failed": _TOO_LARGE,
    r"\Z": r"\Z is not supported, write \z",
    r"\u": r"\u is not supported, write \x{20ac}",
    r"\U": r"\U is not supported, write \x{20ac}",
} | {rf"\{digit}": "back-references are not supported" for digit in range(1, 10)}
"""Clearer messages than RE2's "invalid perl operator" and "invalid escape sequence"."""


class PatternError(ValueError):
    """RE2 does not support a pattern; the message is one line for the user."""


class CompiledPattern(NamedTuple):
    """A pattern that can be searched for.

    Attributes:
        instructions: the length of its program; the time of a search is at most proportional to this and to
            the length of the body.
        search: finds it anywhere in a body of UTF-8; None if it is not there.
    """

    instructions: int
    search: Callable[[bytes], object]


def parse_patterns(value: object) -> tuple[str, ...]:
    """Parse patterns that a body must match anywhere: one or a list. They are not compiled."""
    patterns = tuple(map(parse_scalar, list_given(value, "regular expression")))
    for pattern in patterns:
        if len(pattern) > MOST_PATTERN_CHARACTERS:
            raise ValueError(f"{format_value(pattern)} is longer than {MOST_PATTERN_CHARACTERS} characters")
    return patterns


@lru_cache(maxsize=MOST_PATTERNS)
def compile_pattern(text: str) -> CompiledPattern:
    """Compile a pattern, for up to 0.1 s; raise `PatternError` if RE2 does not support it."""
    import re2  # noqa: PLC0415  # specs without a pattern do not pay for it

    options = re2.Options()
    options.max_mem = _MOST_MEMORY_BYTES
    options.log_errors = False  # to standard error, from C++
    options.never_capture = True
    try:
        compiled = re2.compile(text.encode(), options)
    except re2.error as error:
        raise _build_error(text, _explain(error.args[0].decode(errors="replace"))) from error
    if why := _find_other_meaning(text):
        raise _build_error(text, why)
    if compiled.programsize > _MOST_INSTRUCTIONS:
        raise _build_error(text, _TOO_LARGE)
    return CompiledPattern(compiled.programsize, compiled.search)


def _explain(fault: str) -> str:
    place = fault.partition(": ")[2]
    return _UNSUPPORTED.get(place or fault) or format_value(fault)


def _find_other_meaning(text: str) -> str | None:
    """Find what RE2 reads as text, and Python as something else; None if there is nothing."""
    for found in _ESCAPE_OR_REPETITION.findall(text):
        if found.startswith("{"):
            return f"{found} is not supported, write {{0{found[1:]}"
        if len(found) == 3 and found[1:].isdecimal():
            return "back-references are not supported"
    return None


def _build_error(text: str, why: str) -> PatternError:
    return PatternError(f"{format_value(text)} is not a regular expression of RE2: {why}")
