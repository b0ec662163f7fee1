"""The scenario of a file: its function, and what that is called with."""

import inspect
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import Any

from oku.sandbox.user_module import LoadError, load_module
from oku_core.spec.spec import ARGUMENTS, SCENARIO, Spec

ScenarioFunction = Callable[..., Coroutine[Any, Any, object]]
UserFunction = Callable[..., Any]


class Scenario:
    """The function `scenario` of a module.

    Args:
        function: a coroutine function.
        place: its file, for messages.

    Attributes:
        function: as given.
        place: as given.
        arguments: the names of those that it wants.

    Raises:
        LoadError: it wants others than there are.
    """

    def __init__(self, function: ScenarioFunction, place: str) -> None:
        self.function, self.place = function, place
        self.arguments = find_arguments(function, ARGUMENTS[SCENARIO], place)


def load_scenario(spec: Spec, folder: Path) -> Scenario:
    """Load the file of a spec.

    Args:
        spec: one that runs a scenario.
        folder: where its files are.

    Raises:
        LoadError: it cannot be run; the message is one line for its author.
    """
    assert spec.scenario is not None
    path = spec.scenario.path
    function = getattr(load_module(folder, path), SCENARIO, None)
    if not inspect.iscoroutinefunction(function):
        raise LoadError(f"{path} has no `async def {SCENARIO}(index, http)`")
    scenario = Scenario(function, path)
    if "row" in scenario.arguments and spec.data is None:
        raise LoadError(
            f"{path}: {SCENARIO} asks for the argument row, but the run has no data: give --data FILE"
        )
    return scenario


def find_arguments(function: UserFunction, known: Collection[str], place: str) -> frozenset[str]:
    """The arguments that a function of user code wants, of those that there are.

    Args:
        function: of user code.
        known: what it may want.
        place: its file, for messages.

    Raises:
        LoadError: it wants others.
    """
    found: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            found.add(parameter.name)
        elif parameter.default is parameter.empty:
            name = getattr(function, "__name__", "the function")
            wanted = f"{place}: {name} asks for the argument {parameter.name}"
            raise LoadError(f"{wanted}, but it may have {', '.join(known)}")
    return frozenset(found)
