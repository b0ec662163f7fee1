"""Reads a file of user code without running it: its engine, its hooks, the modules that it needs."""

import ast
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from oku_cli.user_code.code_files import CheckFile, ImportedModules, allow_any, iter_module_statements
from oku_core.errors import UserError, format_value
from oku_core.spec.spec import ARGUMENTS, SCENARIO, Engine, Hook

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class ScenarioFunctions(NamedTuple):
    """What a scenario has.

    Attributes:
        row_line: the line in which it asks for the row of its iteration; None if it does not.
    """

    hooks: tuple[Hook, ...]
    row_line: int | None


def read_functions(tree: ast.Module, label: str) -> ScenarioFunctions | None:
    """The functions of a scenario; None if the file has no `async def scenario`.

    Raises:
        UserError: one of them is none that can be called with what there is.
    """
    found = {
        node.name: node
        for node in iter_module_statements(tree)
        if isinstance(node, _Function) and node.name in ARGUMENTS
    }
    scenario = found.get(SCENARIO)
    if scenario is None:
        return None
    if isinstance(scenario, ast.FunctionDef) or _yields(scenario):
        reason = "yields" if isinstance(scenario, ast.AsyncFunctionDef) else "is not async"
        raise UserError(f"{label}:{scenario.lineno}: scenario {reason}; it has to be a coroutine function")
    for function in found.values():
        _check_arguments(function, label)
    row = next((argument for argument in _list_named(scenario) if argument.arg == "row"), None)
    hooks = tuple(hook for hook in Hook if hook in found)
    return ScenarioFunctions(hooks, None if row is None else row.lineno)


def _check_arguments(function: _Function, label: str) -> None:
    arguments, allowed = function.args, ARGUMENTS[function.name]
    place = f"{label}:{function.lineno}: {function.name}"
    if arguments.posonlyargs:
        name = format_value(arguments.posonlyargs[0].arg)
        raise UserError(f"{place}: {name} is given by its name, so that it cannot be positional only")
    optional = [each.arg for each in arguments.args[len(arguments.args) - len(arguments.defaults) :]]
    optional += [
        each.arg
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    for argument in _list_named(function):
        if argument.arg not in (*allowed, *optional):
            names = f"{', '.join(allowed[:-1])} and {allowed[-1]}" if len(allowed) > 1 else allowed[0]
            raise UserError(
                f"{place}: there is no argument {format_value(argument.arg)}; it may have {names}"
            )


def _list_named(function: _Function) -> list[ast.arg]:
    return [*function.args.args, *function.args.kwonlyargs]


def _yields(function: ast.AsyncFunctionDef) -> bool:
    """Whether a function is a generator; those within it do not matter."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


_LOCUST = "locust"
"""All names of its packages begin with this, including its plug-ins."""


class ScenarioFile(NamedTuple):
    """A file of user code, as far as it is known without running it.

    Attributes:
        engine: the one that runs it.
        functions: of a Python scenario; None of a locustfile.
        modules: where its author's modules that it imports are, by their paths from its folder.
    """

    engine: Engine
    functions: ScenarioFunctions | None
    modules: Mapping[str, Path]


def read_scenario_file(
    path: Path,
    label: str,
    engine: Engine | None = None,
    elsewhere: Sequence[Path] = (),
    check: CheckFile = allow_any,
) -> ScenarioFile:
    """Read a file of user code.

    Args:
        path: of the file.
        label: how an error message names it.
        engine: the one that is to run it; None chooses by the content.
        elsewhere: where else a locustfile finds modules.
        check: raises an error for a module that may not be read.

    Raises:
        UserError: it cannot be read, is not Python, or nothing that an engine could run.
    """
    if not path.is_file():
        raise UserError(f"{label}: {'is not a regular file' if path.exists() else os.strerror(errno.ENOENT)}")
    imported = ImportedModules(path, label, check=check)
    functions = read_functions(imported.trees[path.name], label)
    is_locustfile = imported.imports_package(_LOCUST)
    if functions is not None and (engine is not Engine.LOCUST or not is_locustfile):
        return ScenarioFile(Engine.PYTHON, functions, imported.paths)
    if is_locustfile:
        return ScenarioFile(Engine.LOCUST, None, ImportedModules(path, label, elsewhere, check).paths)
    raise UserError(f"{label}: has neither an async def scenario nor users of Locust")
