"""Every regular expression takes linear time, whoever wrote the text."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from time import thread_time

import pytest
from tests.kit.regular_expressions import (
    OWN_TEXT,
    Expression,
    find_expressions,
    list_used_methods,
    name_module,
)
from tests.kit.worst_cases import BUILT, CARRIERS, WORST, Text

_ROOT = Path(__file__).parents[3]
_FOR_DEVELOPERS = frozenset({"charts", "docs", "tests"})
"""What is in these folders reads the repository and what its own tests write."""
_PACKAGES = ("oku", "oku_cli", "oku_core", "oku_server", "oku_workers")
_SIZES = (10_000, 100_000, 1_000_000)
_MOST_GROWTH = 15
_LEAST_S = 0.005
"""A shorter time counts as this: it may be that of a cache, or of memory that others use, too. What is
quadratic takes seconds for 100 kB."""
_MOST_ROUNDS, _MOST_TRIED_S = 12, 3.0


@cache
def _list_sources() -> Mapping[Path, str]:
    """The modules of the tree, but those that only developers run."""
    folders = [path for path in _ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    modules = [*_ROOT.glob("*.py")]
    for folder in folders:
        if folder.name not in _FOR_DEVELOPERS:
            modules += (path for path in folder.rglob("*.py") if "node_modules" not in path.parts)
    return {path: path.read_text() for path in sorted(modules)}


@cache
def _list_foreign() -> Mapping[str, tuple[Path, Expression]]:
    """By their places, the expressions that are not marked as seeing only our own text."""
    return {
        each.place: (path, each)
        for path, source in _list_sources().items()
        for each in find_expressions(source, name_module(path, _ROOT))
        if not each.is_own
    }


def test_each_expression_is_marked_or_has_a_row() -> None:
    """No row is left over, either."""
    found, rows = _list_foreign(), WORST.keys() | BUILT.keys()
    missing = {place: f"line {each.line}" for place, (_, each) in found.items() if place not in rows}
    assert missing == {}, f"give it a row in tests/kit/worst_cases.py, or mark it with `{OWN_TEXT} …`"
    assert sorted(rows - found.keys()) == [], "these are no longer there"


def test_each_row_is_of_a_package_that_is_measured() -> None:
    """A package that has had no expression before is measured, too."""
    assert {_package(place) for place in WORST.keys() | BUILT.keys()} == set(_PACKAGES)


@pytest.mark.heavy
@pytest.mark.parametrize("package", _PACKAGES)
def test_ten_times_the_input_takes_less_than_fifteen_times_the_time(package: str) -> None:
    """This holds for the worst texts of each expression, from 10 kB to 1 MB."""
    slow = [
        f"{what}: {text!r}: {growth:.0f} times the time"
        for what, run, text in _list_runs(package)
        if (growth := _measure_growth(run, text)) >= _MOST_GROWTH
    ]
    assert not slow


@pytest.mark.heavy
@pytest.mark.parametrize("name", CARRIERS)
def test_what_foreign_text_goes_through_takes_no_longer_either(name: str) -> None:
    """Expressions are only one step; encoding and joining are others."""
    run, texts = CARRIERS[name]
    growths = {text: _measure_growth(run, text) for text in texts}
    assert {text: growth for text, growth in growths.items() if growth >= _MOST_GROWTH} == {}


@pytest.mark.heavy
@pytest.mark.parametrize(("pattern", "text"), [(r"\s+$", ("", " ", "x")), (r"(?:/[^/ ]+)+/x/", "/a")])
def test_a_quadratic_expression_is_found(pattern: str, text: Text) -> None:
    """The measure of the other tests can tell."""
    assert _measure_growth(re.compile(pattern).search, text, (2_000, 20_000)) >= _MOST_GROWTH


def _list_runs(package: str) -> Iterator[tuple[str, Callable[[str], object], Text]]:
    """What to run: each expression of a row with each method that the tree uses, and each of its texts."""
    for place in (place for place in WORST if _package(place) == package):
        path, expression = _list_foreign()[place]
        for method in _list_methods(path, expression):
            run = _bind(_compile(expression), method)
            yield from ((f"{place}.{method}", run, text) for text in WORST[place])
    for place in (place for place in BUILT if _package(place) == package):
        run, texts = BUILT[place]
        yield from ((place, run, text) for text in texts)


def _package(place: str) -> str:
    return re.split("[.:]", place, maxsplit=1)[0]


def _list_methods(path: Path, expression: Expression) -> list[str]:
    if expression.method:
        return [expression.method]
    is_private = expression.name.startswith("_")
    sources = [_list_sources()[path]] if is_private else _list_sources().values()
    name = expression.name
    used = [list_used_methods(source, name) for source in sources if f"{name}." in source]
    return sorted(set().union(*used)) or ["search", "fullmatch"]


def _compile(expression: Expression) -> re.Pattern[str] | re.Pattern[bytes]:
    if expression.compiled is not None:
        return expression.compiled
    module, _, name = expression.place.partition(":")
    found = getattr(import_module(module), name)
    assert isinstance(found, re.Pattern)
    return found


def _bind(pattern: re.Pattern[str] | re.Pattern[bytes], method: str) -> Callable[[str], object]:
    """What runs a method of a pattern on a text, and goes through all that it finds."""
    call = getattr(pattern, method)
    is_text = isinstance(pattern.pattern, str)

    def run(text: str) -> object:
        subject = text if is_text else text.encode()
        result = call("" if is_text else b"", subject) if method in ("sub", "subn") else call(subject)
        return sum(1 for _ in result) if method == "finditer" else result

    return run


def _measure_growth(run: Callable[[str], object], text: Text, sizes: Sequence[int] = _SIZES) -> float:
    """How many times longer ten times of a text take at most; a step that is too slow is the last."""
    worst = 0.0
    for small, large in pairwise(sizes):
        growth = _compare(run, _write(text, small), _write(text, large))
        worst = max(worst, growth)
        if worst >= _MOST_GROWTH:
            break
    return worst


def _compare(run: Callable[[str], object], small: str, large: str) -> float:
    """How many times longer the large text takes: the best of some rounds, as others use the machine, too."""
    small_s = large_s = float("inf")
    for rounds in range(1, _MOST_ROUNDS + 1):
        small_s, large_s = min(small_s, _time(run, small)), min(large_s, _time(run, large))
        growth = large_s / max(small_s, _LEAST_S)
        is_clear = not _MOST_GROWTH <= growth <= 3 * _MOST_GROWTH
        if is_clear or rounds * large_s > _MOST_TRIED_S:
            break
    return growth


def _time(run: Callable[[str], object], text: str) -> float:
    begun = thread_time()
    run(text)
    return thread_time() - begun


def _write(text: Text, size: int) -> str:
    begin, repeated, end = ("", text, "") if isinstance(text, str) else text
    return begin + repeated * (size // len(repeated)) + end
