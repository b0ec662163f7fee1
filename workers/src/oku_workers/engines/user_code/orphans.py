"""The hosts of this process, and their orphans: processes that become its children when a host ends.

A process has its children as a whole, so there is one register of hosts for all of them.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_PATIENCE_S = 2.0
"""After this time, a process that forks faster than it can be killed is left to the system."""
_PAUSE_S = 0.01

_hosts: set[int] = set()
_starting = threading.Lock()
"""Held while a host is started: it is no orphan before it is registered."""


def register_host(start: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
    """Start a host, which is no orphan until `forget_host`."""
    with _starting:
        host = start()
        _hosts.add(host.pid)
    return host


def forget_host(pid: int) -> None:
    """Forget a host that has ended and whose exit status was read."""
    _hosts.discard(pid)


def end_orphans() -> int:
    """Kill all children of this process but hosts, and then theirs; returns how many. It may block briefly.

    Only for a process that adopts orphans and starts nothing but hosts.
    """
    return _end(_find_orphans)


def end_children() -> int:
    """As `end_orphans`, but kill hosts, too: for a process that ends itself then."""
    return _end(lambda: set(_list_children()))


def _end(find: Callable[[], set[int]]) -> int:
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_S
    while (children := find()) and time.monotonic() < deadline:
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        _bury(children)
        ended |= children
        time.sleep(_PAUSE_S)  # their own children arrive
    return len(ended)


def has_orphans() -> bool:
    """Whether this process has a child that is no host."""
    return bool(_find_orphans())


def bury_orphans() -> None:
    """Read the exit status of dead orphans, so that they do not stay as zombies."""
    with _starting, suppress(ChildProcessError):
        while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if dead.si_pid in _hosts:
                return  # its owner reads the status
            _bury([dead.si_pid])


def _find_orphans() -> set[int]:
    with _starting:
        return set(_list_children()) - _hosts


def _bury(orphans: Collection[int]) -> None:
    for orphan in orphans:
        with suppress(ChildProcessError):
            os.waitpid(orphan, os.WNOHANG)


def _list_children() -> Iterator[int]:
    """The process ids of the children of this process, zombies included."""
    own = str(os.getpid())
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, IndexError):
                # The name in it may contain anything, brackets included.
                if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                    yield int(folder.name)
