"""A file of user code goes in; which engine runs it, its hooks and the modules that it needs come out."""

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from oku_cli.user_code.imported_modules import CheckFile, ImportedModules, allow_any
from oku_cli.user_code.scenario_functions import ScenarioFunctions, read_functions
from oku_core.errors import UserError
from oku_core.spec.spec import Engine

_LOCUST = "locust"
"""Of its packages, all names begin so: those of its plug-ins, too."""


class ScenarioFile(NamedTuple):
    """What is known of a file of user code.

    Attributes:
        engine: what runs it.
        functions: those of a Python scenario; None of a locustfile.
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
        engine: what is to run it; None chooses by what it is.
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
