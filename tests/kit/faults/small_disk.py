"""A disk that a test fills, and gives space again: a small file system in memory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.requirement import miss

_PIECE = bytes(1 << 16)


class SmallDisk:
    """A mounted file system.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no space at all."""
        with self._filler.open("ab", buffering=0) as filler:
            for piece in (_PIECE, _PIECE[:4096]):
                try:
                    while filler.write(piece) == len(piece):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        """Give the space again."""
        self._filler.unlink()


@contextmanager
def mount_small_disk(path: Path, size: str = "12m") -> Iterator[SmallDisk]:
    """Mount one at `path` until the end of the block."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        miss("a disk that a test may fill needs root and mount")
    path.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "oku-test", path], check=True)
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
