"""The folder that user code runs in: its files, under the paths that they had on its user's machine.

Its worker holds a lock on it. The next worker removes the folders of workers that were killed.
"""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from oku_core.spec.spec import Spec
from oku_core.spec.values.file_reference import CodeFile, FindFile
from oku_workers.engines.contract.engine_protocol import EngineError

_PREFIX = "oku-code-"
_NEW_S = 60.0
"""A newer folder may not be locked yet."""

_locks: dict[Path, int | None] = {}
"""The descriptors that hold the locks of this process, by folder."""


def build_code_folder(spec: Spec, find_file: FindFile) -> Path:
    """Copy the files of the user code of a spec into a new folder; this may block.

    They are copies: user code may write where it runs, and the files of a run are shared.

    Args:
        spec: one that runs user code.
        find_file: gives the path of a file by its digest.

    Raises:
        EngineError: a file cannot be read, or there is no room for it.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        fill_code_folder(folder, spec, find_file)
    except EngineError:
        remove_code_folder(folder)
        raise
    return folder


def fill_code_folder(folder: Path, spec: Spec, find_file: FindFile) -> None:
    """Copy the files that are missing in a folder of user code, or the whole folder.

    Arguments and errors are the same as for `build_code_folder`.
    """
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            _unlock(folder)
        if folder not in _locks:
            _locks[folder] = _lock(folder)
        for code in list_code(spec):
            _restore(folder, Path(code.path), find_file(code.file.digest))
    except OSError as error:
        raise EngineError(
            f"the files of the scenario cannot be written: {error.strerror or error}"
        ) from error


def _restore(folder: Path, name: Path, source: Path) -> None:
    """Copy a file that is missing, never through a link of user code, which may lead out of the folder."""
    for path in reversed((name, *name.parents[:-1])):
        if (folder / path).is_symlink():
            (folder / path).unlink()
    path = folder / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as content, path.open("xb") as copy:
            shutil.copyfileobj(content, copy)


def list_code(spec: Spec) -> tuple[CodeFile, ...]:
    """The files of user code of a spec; none if it runs none."""
    return () if spec.scenario is None else (spec.scenario, *spec.include)


def remove_code_folder(folder: Path) -> None:
    """Remove a folder of user code with everything in it."""
    _remove(folder)
    _unlock(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, including subfolders that user code has made inaccessible."""
    with suppress(OSError):
        folder.chmod(0o700)
        for place, names, _ in os.walk(folder):
            for path in (Path(place, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _unlock(folder: Path) -> None:
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)


def _remove_abandoned() -> None:
    """Remove the folders whose workers are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < _NEW_S:
                continue
            if (lock := _lock(folder)) is not None:
                _remove(folder)
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """Try to lock a folder; returns its descriptor, or None if another process holds the lock."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
