"""Checks that a public name means one thing: no two modules, classes or functions of the product share one.

Methods and nested functions may repeat, and so may a name in `ROLES`, within its folder.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from docs.tools.house.tree import Module, Tree

_ENGINES = r"workers/src/oku_workers/engines/"
_HTTP_ENGINES = rf"{_ENGINES}(?:aiohttp|httptools|nghttp2)/"
_ENTRIES = r"(?:cli/src/oku_cli/(?:__)?main(?:__)?|scenarios/src/oku/host)\.py"
ROLES = {
    "module engine": _ENGINES,
    "module connection": _HTTP_ENGINES,
    "module request": _HTTP_ENGINES,
    "module route": _HTTP_ENGINES,
    "module session": _HTTP_ENGINES,
    "module process": r"\w+/src/oku_\w+/process\.py",
    "module settings": r"\w+/src/oku_\w+/settings\.py",
    "module runs": r"cli/src/oku_cli/commands/|coordinator/src/oku_coordinator/runs/",
    "class Connection": _HTTP_ENGINES,
    "class Origin": _HTTP_ENGINES,
    "class Owner": _HTTP_ENGINES,
    "class Route": _HTTP_ENGINES,
    "function build_request": _HTTP_ENGINES,
    "function build_routes": _HTTP_ENGINES,
    "function command": r"cli/src/oku_cli/commands/",
    "function main": _ENTRIES,
    "function serve": r"\w+/src/oku_\w+/process\.py|scenarios/src/oku/scenario_host/",
}
"""Names of a role that several parts have, each with the beginning of their paths, as a pattern.

Every engine has a route, a process has settings, and a command of `oku` may be called as its subject.
"""


def find_faults(tree: Tree) -> Iterator[str]:
    """Find the names that occur twice outside their role, one line each with all places."""
    for name, places in find_repeated(tree).items():
        role = ROLES.get(name)
        if role is None or not all(re.match(role, place) for place in places):
            yield f"{name} has several places: {', '.join(places)}"


def find_repeated(tree: Tree) -> dict[str, list[str]]:
    """Find the places of every public name that occurs twice, by kind and name, such as `class Account`."""
    places = defaultdict(list)
    for module in tree.modules:
        for name, line in _list_names(module):
            if not name.split()[1].startswith("_"):
                places[name].append(f"{module.path}:{line}")
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def _list_names(module: Module) -> Iterator[tuple[str, int]]:
    yield f"module {module.name}", 1
    yield from ((f"class {node.name}", node.lineno) for node in module.classes)
    for node in ast.parse(module.text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"function {node.name}", node.lineno
