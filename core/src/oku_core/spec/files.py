"""The files that a spec names: whoever may submit a run chooses their paths, so they are read with care.

A path comes in, the content of its file goes out, if the operator allows a folder that it is in and it is a
regular file of bounded size. Outside of these folders nothing is looked at, and the answer is always the
same, so that it does not tell what exists there.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from oku_core.errors import UserError, format_value
from oku_core.spec.spec import Spec

MOST_BYTES = 1 << 20
"""The bundle of all public authorities has a quarter of this."""

_SEARCH_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEYS = ("cacert", "cert", "key")


class SpecFileError(UserError):
    """A file cannot be read, or may not be; the message says why, and is the rest of a sentence."""


@dataclass(frozen=True)
class SpecFiles:
    """Reads files below some folders.

    Args:
        folders: those that the operator allows, with all that is below them.
    """

    folders: tuple[Path, ...] = ()

    def check(self, spec: Spec) -> None:
        """Refuse a spec that names a file elsewhere, by its path alone; `UserError` names key and path."""
        for key in _KEYS:
            path = getattr(spec, key)
            if path is not None and not self._is_named_below(path):
                raise UserError(f"{key}: {format_value(path)} cannot be used: {_refuse()}")

    def read(self, path: str) -> bytes:
        """The content of a file; may block as long as its file system does.

        Raises:
            SpecFileError: it is outside of the folders, is not there, is not a regular file, or is too large.
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
"""For processes of which nobody said what they may read."""
EVERYWHERE = SpecFiles((Path("/"),))
"""For processes that serve nobody but the user whose files these are."""


def _refuse() -> SpecFileError:
    return SpecFileError("files are read only from the folders that --files-dir allows")


def _read_below(root: Path, name: Path) -> bytes:
    """Read a file by a path without symbolic links; one that has become a link meanwhile is not followed."""
    folder = os.open(root, _SEARCH_FOLDER)
    try:
        for part in name.parent.parts:
            below = os.open(part, _SEARCH_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        # To open a device may do something already.
        _require_readable(os.stat(name.name, dir_fd=folder, follow_symlinks=False))
        file = os.open(name.name, _READ_FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        _require_readable(os.fstat(file))
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:  # it has grown, or belongs to a file system that does not tell sizes
        raise _refuse_size()
    return content


def _require_readable(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SpecFileError("it is not a regular file")
    if found.st_size > MOST_BYTES:
        raise _refuse_size()


def _refuse_size() -> SpecFileError:
    return SpecFileError(f"it is larger than {MOST_BYTES >> 20} MiB")
