"""The Unix socket by which the workers of a local stack reach its coordinator."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from oku_core.broker.socket_url import LONGEST_PATH, open_unix_socket
from oku_core.errors import UserError

_NAME = "workers.sock"
_USUAL_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # a new folder of our own is made there


class StackSocket:
    """Listens in a folder, or in a new temporary folder if that path is too long for a socket.

    Args:
        folder: the folder, which the caller holds.

    Raises:
        UserError: no temporary folder is suitable either.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = _choose_path(folder)
        self.path.unlink(missing_ok=True)  # of a stack that was killed
        self.listening = open_unix_socket(self.path)

    def close(self) -> None:
        """Close the socket, and remove it."""
        self.listening.close()
        if self.path.parent == self._folder:
            self.path.unlink(missing_ok=True)
        else:
            shutil.rmtree(self.path.parent, ignore_errors=True)


def _choose_path(folder: Path) -> Path:
    if _may_be_socket(folder / _NAME):
        return folder / _NAME
    for parent in (tempfile.gettempdir(), *_USUAL_TEMPORARY):
        # mkdtemp adds eight characters.
        if _may_be_socket(Path(parent, f"oku-{'x' * 8}", _NAME)):
            with suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="oku-", dir=parent)) / _NAME
    raise UserError(
        f"the workers need a folder whose path has at most {LONGEST_PATH - len(_NAME) - 1} bytes:"
        " choose one with --data-dir or TMPDIR"
    )


def _may_be_socket(path: Path) -> bool:
    return len(os.fsencode(path)) <= LONGEST_PATH
