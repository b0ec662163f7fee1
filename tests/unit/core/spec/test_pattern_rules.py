import pytest

from oku_core.spec.expectation import Expectation
from oku_core.spec.parser import Source, SpecError, parse_spec
from oku_core.spec.pattern_rules import compile_patterns, find_pattern_fault, has_patterns
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.spec.values.pattern import MOST_PATTERNS, PatternError

URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (
            {"url": URL, "expect-match": ["ok", "(?=a)"]},
            "spec: expect-match: (?=a) is not a regular expression of RE2: lookahead is not supported",
        ),
        (
            {"targets": [{"name": "tea", "url": URL, "expect": {"match": "("}}]},
            "spec: targets: tea: expect: match: ( is not a regular expression of RE2: missing ): (",
        ),
        (
            {"url": URL, "expect-match": [str(number) for number in range(MOST_PATTERNS + 1)]},
            "spec: expect-match: a spec has at most 100 different regular expressions",
        ),
        (
            {"targets": [{"url": URL, "expect": {"match": ["(", *map(str, range(MOST_PATTERNS))]}}]},
            f"spec: targets: GET {URL}: expect: match: a spec has at most 100 different regular expressions",
        ),
    ],
)
def test_the_fault_of_a_pattern_names_its_place(values: dict[str, object], fault: str) -> None:
    """Patterns are counted before any is compiled."""
    with pytest.raises(SpecError) as caught:
        parse_spec(Source("spec", values))
    assert str(caught.value) == fault


def test_the_same_pattern_counts_once() -> None:
    """Many targets may expect the same."""
    targets = tuple(
        Target(name=str(number), url=URL, expect=Expectation(match=("same", "again")))
        for number in range(MOST_PATTERNS)
    )
    assert find_pattern_fault(Spec(targets=targets, expect_match=("same",))) is None


def test_patterns_are_compiled_in_advance() -> None:
    """Those of a message were checked when the run was submitted; one that was not is refused here."""
    assert not has_patterns(Spec())
    spec = Spec(expect_match=("(",))
    assert has_patterns(spec)
    with pytest.raises(PatternError):
        compile_patterns(spec)
