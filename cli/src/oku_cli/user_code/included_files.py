"""The files of a folder that goes along with user code: all of them but caches and what is hidden."""

import os
from collections.abc import Iterator
from pathlib import Path

from oku_core.errors import UserError

MOST_FILES = 1_000
"""Of one run, its scenario included; a spec names each of them."""
MOST_TOTAL_BYTES = 256 << 20
"""Of all of them: every worker has a copy of its own."""
_CACHES = frozenset({"__pycache__", "node_modules"})


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
