"""Hands variables with secret values to a child by a socket, since others could see its environment.

The child reports that it is closed to others, and gets the variables, unless the kernel contradicts or
another process traces it. They travel as `/proc/PID/environ` has them: NAME=VALUE, separated by zero bytes.
The content of a socket cannot be opened through `/proc`.
"""

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.prctl import DEBUGGABLE, may_be_debugged

FLAG = "--variables-fd"
"""The option of a command that takes the descriptor of its end of the socket."""
SECRET = (
    "OKU_BROKER_PASSWORD",
    "OKU_BROKER_URL",
    "OKU_LOKI_PASSWORD",
    "OKU_LOKI_TOKEN",
    "OKU_MESSAGE_KEY",
    "OKU_TOKEN",
)
"""The variables of Oku's own whose values are secret, or may contain a secret."""
_READY = b"\0"
_SEPARATOR = b"\0"
_PATIENCE_S = 60.0
"""A process that is started may have to wait for a busy machine."""
_MOST_BYTES = 1 << 20
_TRACER = "TracerPid:"


def hand_over(connection: socket.socket, pid: int, variables: Mapping[str, str]) -> None:
    """Wait until the child is closed to others, and send it the variables; close the socket in any case."""
    connection.settimeout(_PATIENCE_S)
    with connection, suppress(OSError):  # others notice a child that has ended
        if connection.recv(len(_READY)) and is_closed(pid):
            pairs = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
            connection.sendall(_SEPARATOR.join(pairs))


def is_closed(pid: int) -> bool:
    """Whether no other process of our user can look into a child of ours, or the user wants that they can."""
    if sys.platform != "linux" or may_be_debugged():
        return True
    folder = Path(f"/proc/{pid}")
    try:
        tracers = [line for line in (folder / "status").read_text().splitlines() if line.startswith(_TRACER)]
        # Files of a process that is not dumpable belong to root. Files of a process of root always do: it is
        # closed by its capabilities, which no process without them may look past.
        is_dumpable = os.geteuid() != 0 and (folder / "environ").stat().st_uid == os.geteuid()
    except FileNotFoundError:  # it is gone, or /proc shows only processes that we could trace
        return True
    return not is_dumpable and all(line.split()[1:] == ["0"] for line in tracers)


def receive(descriptor: int) -> dict[str, str]:
    """Receive the variables from the process that has started this one.

    Raises:
        UserError: there is no socket, or it brings no variables.
    """
    try:
        with socket.socket(fileno=descriptor) as connection:
            connection.sendall(_READY)
            with connection.makefile("rb") as stream:
                content = stream.read(_MOST_BYTES)
    except OSError as error:
        raise UserError(f"{FLAG}: {descriptor} is not an inherited socket: {error.strerror}") from error
    if not content:
        raise UserError(
            f"{FLAG}: nothing was handed over: another process traces this one, or may;"
            f" set {DEBUGGABLE}=yes to use a debugger"
        )
    pairs = (os.fsdecode(pair).partition("=") for pair in content.split(_SEPARATOR))
    return {name: value for name, _, value in pairs}


def forget_secrets() -> None:
    """Remove the secrets from the environment that processes started from here on inherit."""
    for name in SECRET:
        os.environ.pop(name, None)
