"""The files that go along with a Python file: modules beside it that it imports, in turn, and included ones.

Modules are found as Python would find them with the folder of the file first in its path, except for the
packages that user code is written for, which are never files of its own. Imports by
a name that is only computed at run time are not found.
"""

import ast
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from oku_core.errors import UserError
from oku_core.spec.spec import LIBRARIES

_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MOST_FILES = 1_000
"""Of one run, its scenario included; a spec names each of them."""
MOST_TOTAL_BYTES = 256 << 20
"""Of all of them: every worker has a copy of its own."""
_CACHES = frozenset({"__pycache__", "node_modules"})


def parse_python(content: bytes, label: str) -> ast.Module:
    """The syntax tree of a Python file.

    Raises:
        UserError: it is not Python.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # a user sees them when it runs
            return ast.parse(content)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{label}{line}: is not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or nested too deeply
        raise UserError(f"{label}: is not Python: {str(error) or 'it is nested too deeply'}") from error


def iter_module_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, also those within `if` and `try`."""
    for name in _BLOCKS:
        for child in getattr(tree, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            if not isinstance(child, _SCOPES):
                yield from iter_module_statements(child)


CheckFile = Callable[[Path], None]
_PACKAGE = "__init__.py"


def allow_any(_: Path) -> None:
    """Any file may be read."""


class ImportedModules:
    """Follows imports from one file.

    Args:
        path: of the file.
        label: how an error message names it.
        elsewhere: the folders to search for modules that are not beside the file.
        check: raises an error for a file that may not be read.

    Attributes:
        trees: the syntax trees of the file and of the modules, by their paths in their folder.

    Raises:
        UserError: one of them cannot be read, or is not Python.
    """

    def __init__(
        self, path: Path, label: str, elsewhere: Sequence[Path] = (), check: CheckFile = allow_any
    ) -> None:
        self._check = check
        self._folders = (path.parent, *elsewhere)
        self._label_folder = label.removesuffix(path.name)
        self.trees: dict[str, ast.Module] = {}
        waiting = [path.name]
        while waiting:
            name = waiting.pop()
            if name not in self.trees:
                self.trees[name] = self._parse(name)
                waiting += self._list_imported(name)

    @property
    def paths(self) -> dict[str, Path]:
        """Where all but the file itself are, by their paths in their folder, in order."""
        return {path: self._find_folder(path) / path for path in sorted(list(self.trees)[1:])}

    def imports_package(self, begin: str) -> bool:
        """Whether one of the files imports a package whose name begins so, other than those beside it."""
        own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in self.paths} - LIBRARIES
        return any(
            parts[0].startswith(begin) and parts[0] not in own
            for tree in self.trees.values()
            for node in ast.walk(tree)
            for parts in _list_names(node, None)
        )

    def _parse(self, path: str) -> ast.Module:
        folder = self._find_folder(path)
        self._check(folder / path)
        label = f"{self._label_folder}{path}" if folder == self._folders[0] else str(folder / path)
        try:
            content = (folder / path).read_bytes()
        except OSError as error:
            raise UserError(f"{label}: {error.strerror}") from error
        return parse_python(content, label)

    def _list_imported(self, path: str) -> Iterator[str]:
        package = PurePosixPath(path).parent.parts
        for node in ast.walk(self.trees[path]):
            for parts in _list_names(node, package):
                if parts[0] not in LIBRARIES:
                    yield from self._find(parts)

    def _find_folder(self, path: str) -> Path:
        """The first folder with a module, or else a folder, that has the first name of a path."""
        top = PurePosixPath(path).parts[0].removesuffix(".py")
        is_module = (folder for folder in self._folders if _is_module(folder / top))
        is_folder = (folder for folder in self._folders if (folder / top).is_dir())
        return next(is_module, next(is_folder, self._folders[0]))

    def _find(self, parts: tuple[str, ...]) -> Iterator[str]:
        """The files that are loaded to import a name, as far as there are any: its packages come first."""
        folder = self._find_folder(parts[0])
        for count in range(1, len(parts) + 1):
            stem = "/".join(parts[:count])
            candidates = (f"{stem}/{_PACKAGE}", f"{stem}.py")
            if found := next((path for path in candidates if (folder / path).is_file()), None):
                yield found
            elif not (folder / stem).is_dir():
                return


def _is_module(stem: Path) -> bool:
    return stem.with_name(f"{stem.name}.py").is_file() or (stem / _PACKAGE).is_file()


def _list_names(node: ast.AST, package: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    """The names that a statement imports, from the top; without a package, no relative ones."""
    if isinstance(node, ast.Import):
        yield from (tuple(alias.name.split(".")) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base: tuple[str, ...] = ()
        if node.level:
            if package is None or node.level - 1 > len(package):
                return
            base = package[: len(package) - (node.level - 1)]
        module = (*base, *(node.module.split(".") if node.module else ()))
        if module:
            yield module
        yield from ((*module, alias.name) for alias in node.names if alias.name != "*")


def list_included(path: Path, label: str) -> list[Path]:
    """A file, or the files of a folder and of those below it, in order.

    Raises:
        UserError: it cannot be read, has nothing in it, or too much.
    """
    if not path.is_dir():
        return [path]
    files: list[Path] = []
    for file in _walk(path, label):
        files.append(file)
        if len(files) > MOST_FILES:
            raise UserError(f"{label}: has more than {MOST_FILES:,} files")
    if not files:
        raise UserError(f"{label}: has no files")
    return sorted(files)


def check_total(size: int, count: int, label: str) -> None:
    """Refuse more files, or more bytes, than user code may have."""
    if count > MOST_FILES:
        raise UserError(f"{label}: with what it imports and includes these are {count:,} files, "
                        f"more than {MOST_FILES:,}")  # fmt: skip
    if size > MOST_TOTAL_BYTES:
        raise UserError(
            f"{label}: with what it imports and includes these are {size >> 20:,} MiB, "
            f"more than {MOST_TOTAL_BYTES >> 20}"
        )


def _walk(folder: Path, label: str) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise UserError(f"{label}: {error.filename}: {error.strerror}") from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not _is_left_out(name)]
        yield from (Path(place, name) for name in names if not _is_left_out(name))


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _CACHES or name.endswith(".pyc")
