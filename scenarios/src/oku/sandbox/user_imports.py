"""Finds the modules of user code, which may have any names.

A file beside a scenario may have the name of a module of Python, of Oku or of a library, such as `token.py`.
User code that imports this name gets the file; all other code gets the library, even if it imports it later.
So the folder of user code is last in the path. A file whose name is taken becomes a module of the package
`oku_user_code`, where only imports of user code look.
"""

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from oku_core.spec.spec import LIBRARIES

_PACKAGE = "oku_user_code"


class UserImports:
    """The imports of user code in some folders.

    Args:
        folders: where its modules are; the first folder with a module wins.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [str(folder) for folder in folders]
        self._finders = [_build_finder(folder, self._build_loader) for folder in self._folders]
        self._builtins = {**vars(builtins), "__import__": self._import}
        self._import_library = builtins.__import__
        self._are_hidden: dict[str, bool] = {}

    def install(self) -> None:
        """Let imports find user code, after everything else."""
        package = ModuleType(_PACKAGE)
        package.__path__ = self._folders
        sys.modules[_PACKAGE] = package
        sys.path_hooks.insert(0, self._hook)
        sys.path.extend(self._folders)

    def load(self, path: Path) -> ModuleType:
        """Load a file as a module that user code can import by the name of the file."""
        name = self._build_name(path.stem)
        spec = spec_from_file_location(name, path, loader=self._build_loader(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def _hook(self, path: str) -> FileFinder:
        """Find the modules of a folder of user code; for `sys.path_hooks`."""
        if not any(Path(path).is_relative_to(folder) for folder in self._folders):
            raise ImportError("is not a folder of user code", path=path)
        return _build_finder(path, self._build_loader)

    def _build_loader(self, name: str, path: str) -> SourceFileLoader:
        return _UserLoader(name, path, self._builtins)

    def _build_name(self, name: str) -> str:
        return f"{_PACKAGE}.{name}" if self._is_taken(name) else name

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002  # as `__import__` calls them
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """The `__import__` of user code."""
        top = name.partition(".")[0]
        if level or not self._hides(top) or _is_file(globals, f"{_PACKAGE}.{top}"):
            return self._import_library(name, globals, locals, fromlist, level)
        module = importlib.import_module(f"{_PACKAGE}.{name}")
        if not fromlist:
            return sys.modules[f"{_PACKAGE}.{top}"]
        return self._import_library(module.__name__, globals, locals, fromlist)

    def _hides(self, name: str) -> bool:
        """Whether user code has a module of a name that is taken."""
        if name not in self._are_hidden:
            is_here = any(_is_module(finder.find_spec(name)) for finder in self._finders)
            self._are_hidden[name] = is_here and name not in LIBRARIES and self._is_taken(name)
        return self._are_hidden[name]

    def _is_taken(self, name: str) -> bool:
        """Whether a name belongs to a module that is not user code."""
        loaded = sys.modules.get(name)
        if loaded is not None:
            return not isinstance(getattr(loaded, "__loader__", None), _UserLoader)
        if name in sys.stdlib_module_names:
            return True
        others = [path for path in sys.path if path not in self._folders]
        return any(
            _is_module(finder.find_spec(name, others if finder is PathFinder else None))
            for finder in sys.meta_path
        )


class _UserLoader(SourceFileLoader):
    """Loads a file of user code, whose import statements find user code first."""

    def __init__(self, name: str, path: str, user_builtins: dict[str, Any]) -> None:
        super().__init__(name, path)
        self._builtins = user_builtins

    def exec_module(self, module: ModuleType) -> None:
        """Execute the file."""
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)


def _build_finder(folder: str, loader: Any) -> FileFinder:
    return FileFinder(
        folder,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (loader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )


def _is_module(spec: ModuleSpec | None) -> bool:
    """Whether a spec belongs to a module; a folder without `__init__.py` is none."""
    return spec is not None and spec.loader is not None


def _is_file(importer: Mapping[str, Any] | None, name: str) -> bool:
    """Whether the importer is the file of this name, which means the library by its own name."""
    return importer is not None and importer.get("__name__") == name and "__path__" not in importer
