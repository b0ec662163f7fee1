"""The file that tells a parent process where its server listens: `host:port` and a newline.

A parent that asked for any free port waits for the file. What an earlier server left there is gone before a
server starts, and whoever sees the file sees all of it.
"""

from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.private_files import write_private


def remove_ready_file(path: Path) -> None:
    """Remove what an earlier server left; `UserError` if that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be replaced: {error.strerror}") from error


def write_ready_file(path: Path, address: str) -> None:
    """Say that connections to `address` are accepted; `UserError` if it cannot be written."""
    try:
        write_private(path, f"{address}\n")
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be written: {error.strerror}") from error
