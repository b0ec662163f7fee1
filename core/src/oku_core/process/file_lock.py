"""A lock between processes: on a file, and gone with the process that holds it."""

import fcntl
import os
import time
from pathlib import Path

from oku_core.process.private_files import open_private


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
