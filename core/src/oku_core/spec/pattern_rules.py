"""Checks and compiles the regular expressions of a spec.

A fault is the key that is to blame and what is wrong; the parser adds where that key was given.
"""

from collections.abc import Iterator

from oku_core.errors import format_value
from oku_core.spec.load_rules import Fault
from oku_core.spec.spec import Spec
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError, compile_pattern


def find_pattern_fault(spec: Spec) -> Fault | None:
    """Say which key has a pattern that RE2 does not support, or one too many; None if none has.

    Compiling takes up to 0.1 s for each pattern: do not call this in an event loop.
    """
    patterns: set[str] = set()
    for key, place, pattern in _iter_patterns(spec):
        patterns.add(pattern)
        if len(patterns) > MOST_PATTERNS:
            return key, f"{place}a spec has at most {MOST_PATTERNS} different regular expressions"
    for key, place, pattern in _iter_patterns(spec):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            return key, f"{place}{error}"
    return None


def compile_patterns(spec: Spec) -> None:
    """Compile all patterns of a spec into the cache, so that an event loop finds them there.

    Raises:
        PatternError: RE2 does not support one.
    """
    for _, _, pattern in _iter_patterns(spec):
        compile_pattern(pattern)


def has_patterns(spec: Spec) -> bool:
    """Whether a spec has any pattern."""
    return next(_iter_patterns(spec), None) is not None


def _iter_patterns(spec: Spec) -> Iterator[tuple[str, str, str]]:
    """Each pattern with its key in the spec, and with its place under that."""
    yield from (("expect-match", "", pattern) for pattern in spec.expect_match)
    for target in spec.targets:
        place = f"{format_value(target.name)}: expect: match: "
        yield from (("targets", place, pattern) for pattern in target.expect.match)
