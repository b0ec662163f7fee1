"""The names in a locustfile that flags may take: its user classes, and the tags of its tasks."""

import ast
from collections.abc import Iterator
from pathlib import Path

from oku_cli.user_code.code_files import ImportedModules, iter_module_statements

_NO_USERS = frozenset({"TaskSet", "SequentialTaskSet", "MarkovTaskSet", "LoadTestShape"})
_TAG = "tag"


def list_user_classes(path: Path) -> list[str]:
    """The classes of a file that may be users: those that derive from another one, but for sets of tasks.

    Raises:
        UserError: the file cannot be read, or is not Python.
    """
    classes = [
        node
        for node in iter_module_statements(ImportedModules(path, path.name).trees[path.name])
        if isinstance(node, ast.ClassDef)
    ]
    others = set(_NO_USERS)
    for node in classes:  # a class stands after those that it derives from
        if any(_find_name(base) in others for base in node.bases):
            others.add(node.name)
    return [
        node.name for node in classes if node.bases and node.name not in others and not _is_abstract(node)
    ]


def list_tags(path: Path) -> list[str]:
    """The tags of tasks in a file and in the modules beside it that it imports, sorted.

    Raises:
        UserError: one of them cannot be read, or is not Python.
    """
    trees = ImportedModules(path, path.name).trees.values()
    return sorted({tag for tree in trees for node in ast.walk(tree) for tag in _iter_tags(node)})


def _is_abstract(node: ast.ClassDef) -> bool:
    """Whether a class has `abstract = True`."""
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "abstract" for target in each.targets)
        and isinstance(each.value, ast.Constant)
        and each.value.value is True
        for each in node.body
    )


def _iter_tags(node: ast.AST) -> Iterator[str]:
    """The texts of a call of `tag`, which is a decorator."""
    if isinstance(node, ast.Call) and _find_name(node.func) == _TAG:
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value


def _find_name(node: ast.expr) -> str:
    """The last part of a dotted name; empty if this is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
