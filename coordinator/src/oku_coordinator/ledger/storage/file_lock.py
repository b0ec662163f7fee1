"""The right to write a ledger: a lock on a file beside it, which ends with the process that holds it."""

import fcntl
import os
import time
from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.private_files import make_private_folder, open_private


class FileLock:
    """An advisory lock on a file that ends with the process that holds it.

    Raises:
        BlockingIOError: another process held it for all of `wait_s`.
    """

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        self._file = open_private(path, os.O_CREAT | os.O_RDWR)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self.release()
                    raise
                time.sleep(0.05)
            else:
                return

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


def lock_ledger(path: Path, wait_s: float = 0.0, *, trusts_folder: bool = False) -> FileLock:
    """Acquire the right to write the ledger at `path`; its folder is made.

    Raises:
        UserError: another process holds it, or others may write the folder and it is not to be trusted.
    """
    try:
        make_private_folder(path.parent, is_trusted=trusts_folder)
        return FileLock(path.with_suffix(".lock"), wait_s)
    except BlockingIOError:
        raise UserError(f"{path}: another coordinator holds this ledger") from None
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
