"""Starts a command as a user who has no rights here: `python unprivileged.py COMMAND…`, as root.

The folders that Python and Oku are in may be closed to others, as /root is. So the command gets a view of the
file system of its own, where those that are in the way have nothing else in them.
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import oku_core

USER = 65534
"""Nobody, on every system."""
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Become that user, and then the command."""
    _open_way(Path(each).resolve() for each in (sys.base_prefix, sys.prefix, *oku_core.__path__))
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.execvp(sys.argv[1], sys.argv[1:])


def _open_way(needed: Iterable[Path]) -> None:
    closed = {path: blocked for path in needed if (blocked := _find_closed(path)) is not None}
    if not closed:
        return
    _check(_LIBC.unshare(_CLONE_NEWNS))
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    files = {path: os.open(path, os.O_PATH) for path in closed}
    for folder in set(closed.values()):
        _mount("tmpfs", str(folder), "tmpfs", 0, "mode=755")
    for path, file in files.items():
        path.mkdir(parents=True)
        _mount(f"/proc/self/fd/{file}", str(path), "", _MS_BIND | _MS_REC)
        os.close(file)


def _find_closed(path: Path) -> Path | None:
    """The first folder on the way to a path that others may not enter."""
    return next((each for each in reversed((path, *path.parents)) if not each.stat().st_mode & 0o001), None)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [text.encode() for text in (source, target, kind)]
    _check(_LIBC.mount(*words, ctypes.c_ulong(flags), options.encode()))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
