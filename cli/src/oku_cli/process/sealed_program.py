"""Starts programs that are closed to other processes of their user from their first instruction.

A program that calls `become_undumpable` is open between `execve` and that call. A file that another process
of its user has opened then stays open: even its memory, for writing. But the kernel never opens a process
whose program its user may not read. So a program is copied into memory, without the permission to read it,
and the copy is executed. No process can change that permission: the copy has no path, and only closed
processes hold it.
"""

import fcntl
import os
import sys
from functools import cache
from pathlib import Path

from oku_core.process.prctl import may_be_debugged

_MFD_EXEC = 0x10
"""The constant from <linux/memfd.h>; kernels before 6.3 neither know it nor need it."""
_EXECUTABLE_ONLY = 0o111
_ELF = b"\x7fELF"
"""A script would have to be read by its interpreter."""
_OWN_FOLDER = b"$ORIGIN"
"""In a program that looks for libraries beside itself; its copy would not find them."""


@cache
def seal_program(path: str) -> int | None:
    """Return the descriptor of a sealed copy, for as long as this process lives; None if there can be none.

    There is none outside Linux, for scripts, for programs that find their libraries beside themselves, where
    the system executes nothing from memory, and for a user who wants to debug.
    """
    if sys.platform != "linux" or may_be_debugged():
        return None
    try:
        return _seal(Path(path).name, Path(path).read_bytes())
    except OSError:
        return None


def _seal(name: str, program: bytes) -> int | None:
    if not program.startswith(_ELF) or _OWN_FOLDER in program:
        return None
    copy = _create_memory(name)
    try:
        with os.fdopen(os.dup(copy), "wb") as output:
            output.write(program)
        os.fchmod(copy, _EXECUTABLE_ONLY)
        fcntl.fcntl(
            copy, fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL,
        )  # fmt: skip
    except BaseException:
        os.close(copy)
        raise
    return copy


def _create_memory(name: str) -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create(name, flags | _MFD_EXEC)
    except OSError:
        return os.memfd_create(name, flags)
