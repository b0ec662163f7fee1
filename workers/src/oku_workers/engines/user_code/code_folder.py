"""The folder that user code runs in: its files, under the paths that they had on its user's machine."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from oku_core.spec.spec import Spec
from oku_core.spec.values.code_file import CodeFile
from oku_workers.engines.engine_error import EngineError

_PREFIX = "oku-code-"


def build_code_folder(spec: Spec, find_file: Callable[[str], Path]) -> Path:
    """Copy the files of the user code of a spec into a new folder; this may block.

    They are copies: user code may write where it runs, and the files of a run are shared.

    Args:
        spec: one that runs user code.
        find_file: gives the path of a file by its digest.

    Raises:
        EngineError: a file cannot be read, or there is no room for it.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        for code in list_code(spec):
            path = folder / code.path
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(find_file(code.file.digest), path)
    except OSError as error:
        remove_code_folder(folder)
        raise EngineError(
            f"the files of the scenario cannot be written: {error.strerror or error}"
        ) from error
    return folder


def list_code(spec: Spec) -> tuple[CodeFile, ...]:
    """The files of user code of a spec; none if it runs none."""
    return () if spec.scenario is None else (spec.scenario, *spec.include)


def remove_code_folder(folder: Path) -> None:
    """Remove such a folder, with whatever user code has written there."""
    shutil.rmtree(folder, ignore_errors=True)
