"""Finds the regular expressions of a source file by its syntax tree, and the methods they are used with.

Whatever name a library of them is imported under, each mention of one of its functions counts, called or not,
and so does the pattern of a type (msgspec's `Meta`).
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OWN_TEXT = "# own text:"
"""The comment, in a line of a regular expression, that says which text of Oku's own is all that it sees."""

METHODS = frozenset({"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})
_LIBRARIES = frozenset({"re", "regex", "re2", "fnmatch"})
_MENTION = re.compile(rf"\b(?:{'|'.join(_LIBRARIES)}|Meta)\b")
"""A module without one of these words imports none of them, and need not be parsed."""
_FUNCTIONS = METHODS | {"compile", "template", "filter", "fnmatch", "fnmatchcase", "translate", "Scanner"}


class Expression(NamedTuple):
    """A regular expression.

    Attributes:
        place: its module and the name that it is assigned to, or the function that it stands in; a number
            follows where that has several: `package.module:_NAME`, `package.module:function 2`.
        line: where it begins.
        method: the function that it is given to; empty if it is compiled.
        is_own: whether it is marked as seeing only text that Oku wrote itself.
        name: of the module-level variable that holds it; empty without one.
        compiled: it, if its text stands there as it is; else None.
    """

    place: str
    line: int
    method: str
    is_own: bool
    name: str
    compiled: re.Pattern[str] | re.Pattern[bytes] | None


def find_expressions(source: str, module: str) -> list[Expression]:
    """The regular expressions of a module, in the order of its lines.

    Args:
        source: its text.
        module: its name.
    """
    if not _MENTION.search(source):
        return []
    tree = ast.parse(source)
    lines = source.splitlines()
    modules, functions = _find_imports(tree)
    places: Counter[str] = Counter()
    found = []
    for node, scope, name in _walk(tree):
        method = _find_method(node, modules, functions)
        if method is None:
            continue
        place = name or scope or "<module>"
        places[place] += 1
        number = f" {places[place]}" if places[place] > 1 else ""
        call = node if isinstance(node, ast.Call) else None
        found.append(
            Expression(
                place=f"{module}:{place}{number}",
                line=node.lineno,
                method=method if method in METHODS else "",
                is_own=any(OWN_TEXT in line for line in lines[node.lineno - 1 : node.end_lineno]),
                name="" if scope else name,
                compiled=_compile(call, _find_method(call.func, modules, functions)) if call else None,
            )
        )
    return found


def list_used_methods(source: str, name: str) -> set[str]:
    """The methods of the variable `name` that a source file mentions, under that name or as an attribute."""
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in METHODS and _end_of(node.value) == name
    }


def _find_imports(tree: ast.AST) -> tuple[set[str], dict[str, str]]:
    """The names of the libraries in a module, and its names for their functions."""
    modules: set[str] = set()
    functions: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name in _LIBRARIES}
        elif isinstance(node, ast.ImportFrom) and node.module in _LIBRARIES:
            functions |= {each.asname or each.name: each.name for each in node.names}
    return modules, {name: function for name, function in functions.items() if function in _FUNCTIONS}


def _walk(tree: ast.Module) -> Iterator[tuple[ast.expr, str, str]]:
    """Each expression once, a call before its parts, with the function around it and its variable."""
    called: set[int] = set()

    def walk(node: ast.AST, scope: str, name: str) -> Iterator[tuple[ast.expr, str, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope, name = f"{scope}.{node.name}".lstrip("."), ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            name = _end_of(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if isinstance(node, ast.expr) and id(node) not in called:
            if isinstance(node, ast.Call):
                called.add(id(node.func))
            yield node, scope, "" if scope else name
        for child in ast.iter_child_nodes(node):
            yield from walk(child, scope, name)

    yield from walk(tree, "", "")


def _find_method(node: ast.expr, modules: set[str], functions: dict[str, str]) -> str | None:
    """The function of a library that an expression calls or mentions; None if there is none."""
    if isinstance(node, ast.Call):
        is_type = _end_of(node.func) == "Meta" and any(each.arg == "pattern" for each in node.keywords)
        return "search" if is_type else _find_method(node.func, modules, functions)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
        return node.attr if node.attr in _FUNCTIONS else None
    return functions.get(node.id) if isinstance(node, ast.Name) else None


def _compile(call: ast.Call, function: str | None) -> re.Pattern[str] | re.Pattern[bytes] | None:
    given = [each.value for each in call.keywords if each.arg == "pattern"] or call.args[:1]
    text = given[0].value if given and isinstance(given[0], ast.Constant) else None
    if function not in METHODS | {"compile", None} or not isinstance(text, str | bytes):
        return None
    arguments = (*call.args[1:], *(each.value for each in call.keywords if each.arg == "flags"))
    names = {_end_of(node) for argument in arguments for node in ast.walk(argument)}
    flags = re.RegexFlag(0)
    for flag in re.RegexFlag.__members__.keys() & names:
        flags |= re.RegexFlag[flag]
    return re.compile(text, flags)


def _end_of(node: ast.AST) -> str:
    """The last word of a dotted name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def name_module(path: Path, root: Path) -> str:
    """The name under which a source file is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    begin = parts.index("src") + 1 if "src" in parts else 0
    return ".".join(part for part in parts[begin:] if part != "__init__")
