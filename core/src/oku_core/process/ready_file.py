"""The file that tells a parent process where its server listens: `host:port` and a newline.

A parent that asked for any free port waits for this file. A server removes the file of an earlier server
before it starts, and writes its own atomically.
"""

from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.private_files import write_private


def remove_ready_file(path: Path) -> None:
    """Remove the file of an earlier server; raise `UserError` if that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be replaced: {error.strerror}") from error


def write_ready_file(path: Path, address: str) -> None:
    """Announce that the server accepts connections at `address`; raise `UserError` if that is impossible."""
    try:
        write_private(path, f"{address}\n")
    except OSError as error:
        raise UserError(f"--ready-file: {path} cannot be written: {error.strerror}") from error
