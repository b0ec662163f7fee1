"""Reads the files that a spec names, such as certificates.

Anyone who may submit a run chooses these paths, so a file is read only if it is in a folder that the operator
allows, and is a regular file of bounded size. Nothing outside these folders is touched, and the error is
always the same, so that it does not reveal what exists there.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from oku_core.errors import UserError, format_value
from oku_core.spec.spec import Spec

MOST_BYTES = 1 << 20
"""The largest file that is read, in bytes: four times the bundle of all public certificate authorities."""

_SEARCH_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEYS = ("cacert", "cert", "key")


class SpecFileError(UserError):
    """A file cannot be read or is not allowed; the message gives the reason without naming the file."""


@dataclass(frozen=True)
class SpecFiles:
    """Reads files from the folders that the operator allows.

    Attributes:
        folders: the allowed folders; everything below them is allowed, too.
    """

    folders: tuple[Path, ...] = ()

    def check(self, spec: Spec) -> None:
        """Check that a spec names files only in allowed folders; this looks at paths, never at the disk.

        Raises:
            UserError: a file is not in an allowed folder; the message names its key and path.
        """
        for key in _KEYS:
            path = getattr(spec, key)
            if path is not None and not self._is_named_below(path):
                raise UserError(f"{key}: {format_value(path)} cannot be used: {_refuse()}")

    def read(self, path: str) -> bytes:
        """Return the content of a file; this may block for as long as its file system does.

        Raises:
            SpecFileError: the file is not in an allowed folder, does not exist, is not a regular file, or is
                too large.
        """
        if not self._is_named_below(path):
            raise _refuse()
        try:
            real = Path(path).resolve()
            for folder in self.folders:
                root = folder.resolve()
                if real != root and real.is_relative_to(root):
                    return _read_below(root, real.relative_to(root))
        except OSError as error:
            raise SpecFileError(error.strerror or str(error)) from error
        raise _refuse()

    def _is_named_below(self, path: str) -> bool:
        if not Path(path).is_absolute() or not path.isprintable():
            return False
        named = Path(os.path.normpath(path))
        return any(
            named.is_relative_to(os.path.normpath(folder)) or named.is_relative_to(folder.resolve())
            for folder in self.folders
        )


NOWHERE = SpecFiles()
"""Allows no file; for processes whose operator has not allowed any folder."""
EVERYWHERE = SpecFiles((Path("/"),))
"""Allows every file; for processes that serve only the user who started them."""


def _refuse() -> SpecFileError:
    return SpecFileError("files are read only from the folders that --files-dir allows")


def _read_below(root: Path, name: Path) -> bytes:
    """Read a file by its resolved path; a part that has become a symbolic link since is not followed."""
    folder = os.open(root, _SEARCH_FOLDER)
    try:
        for part in name.parent.parts:
            below = os.open(part, _SEARCH_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        # Opening a device can have side effects, so the type is checked first.
        _require_readable(os.stat(name.name, dir_fd=folder, follow_symlinks=False))
        file = os.open(name.name, _READ_FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        _require_readable(os.fstat(file))
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:  # it has grown, or its file system does not report sizes
        raise _refuse_size()
    return content


def _require_readable(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SpecFileError("it is not a regular file")
    if found.st_size > MOST_BYTES:
        raise _refuse_size()


def _refuse_size() -> SpecFileError:
    return SpecFileError(f"it is larger than {MOST_BYTES >> 20} MiB")
