import sys
from collections.abc import Callable
from typing import Any

import pytest

import oku
from oku.sandbox.user_module import LoadError
from oku.scenario_host.scenario import find_arguments

KNOWN = ("index", "http")


def with_all(http: object, index: int) -> None:
    """As most are."""


def with_more(http: object, *more: object, size: int = 3, **others: object) -> None:
    """What has a default need not be given."""


def with_other(index: int, user: int) -> None:
    """Nobody knows what that is."""


def with_place_only(index: int, /) -> None:
    """It cannot be given by name."""


@pytest.mark.parametrize(
    ("function", "names"), [(with_all, {"index", "http"}), (with_more, {"http"}), (lambda: None, set())]
)
def test_a_function_gets_what_it_names(function: Callable[..., Any], names: set[str]) -> None:
    """In any order."""
    assert find_arguments(function, KNOWN, "a.py") == names


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (with_other, r"^a\.py: with_other asks for the argument user, but it may have index, http$"),
        (
            with_place_only,
            r"^a\.py: with_place_only asks for the argument index, but it may have index, http$",
        ),
    ],
)
def test_what_there_is_not_is_refused_before_anything_runs(
    function: Callable[..., Any], message: str
) -> None:
    """In one line."""
    with pytest.raises(LoadError, match=message):
        find_arguments(function, KNOWN, "a.py")


def test_scenarios_import_from_one_place() -> None:
    """Each name there is the one of its module, and there are no others."""
    assert {getattr(oku, name).__name__ for name in oku.__all__} == set(oku.__all__)
    with pytest.raises(AttributeError, match="module 'oku' has no attribute 'Https'"):
        _ = oku.Https


def test_importing_oku_loads_nothing_that_is_not_asked_for() -> None:
    """The host of locustfiles must patch the standard library before anybody uses it."""
    import subprocess

    code = "import sys, oku; print({'asyncio', 'ssl', 'aiohttp', 'socket'} & set(sys.modules))"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"
