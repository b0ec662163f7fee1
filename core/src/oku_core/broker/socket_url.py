"""The URL of a Unix socket between a coordinator and its workers on one machine, in place of a broker.

`unix:///path/to/the/socket`, where the path is quoted as in any URL. The coordinator listens there.
"""

import os
import socket
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from oku_core.errors import UserError, format_value

_SCHEME = "unix://"
LONGEST_PATH = 103
"""The longest path of a Unix socket in bytes on macOS; on Linux it has 107."""
_BACKLOG = 1024


def find_socket_path(broker_url: str) -> Path | None:
    """Find the path in a URL of a socket; None if the URL names a broker.

    Raises:
        UserError: the path is not absolute, or too long for a socket.
    """
    if not broker_url.startswith(_SCHEME):
        return None
    path = Path(os.fsdecode(unquote_to_bytes(broker_url.removeprefix(_SCHEME))))
    if not path.is_absolute() or len(os.fsencode(path)) > LONGEST_PATH or b"\0" in os.fsencode(path):
        raise UserError(
            f"--broker-url: {format_value(str(path))} is not an absolute path of at most {LONGEST_PATH} bytes"
        )
    return path


def build_socket_url(path: Path) -> str:
    """Build the URL of a socket."""
    return f"{_SCHEME}{quote(os.fsencode(path))}"


def open_unix_socket(path: Path) -> socket.socket:
    """Listen at a path that only this user can connect to; what a killed process left there is replaced.

    Raises:
        UserError: another process listens there, or the socket cannot be made.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_served(path):
            raise UserError(f"--broker-url: another coordinator listens at {path}")
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            listening.bind(os.fsencode(path))
        finally:
            os.umask(before)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UserError(f"--broker-url: {path}: {error.strerror or error}") from error
    except UserError:
        listening.close()
        raise
    return listening


def _is_served(path: Path) -> bool:
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(os.fsencode(path)) == 0
