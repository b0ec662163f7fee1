"""Landlock: a process gives up all files but some, and no program that it starts gets them back.

It needs no privileges. Numbers and structures are those of linux/landlock.h; its versions are listed in
https://docs.kernel.org/userspace-api/landlock.html.
"""

import ctypes
import functools
import os
import stat
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntFlag, StrEnum
from pathlib import Path

from oku_core.errors import UserError

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
"""The flag that asks the kernel for its version."""
_BENEATH = 1
"""A rule about a file, or about all that is in a folder."""
_SCOPES_SINCE = 6
_TCP_SINCE = 4
_FILE_RULE = struct.Struct("=Qi")
_PROC = Path("/proc")
_THREADS = Path("/proc/self/task")


class FileRight(IntFlag):
    """Rights to a file, or to the files of a folder."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


class LandlockScope(IntFlag):
    """What a process can reach only among processes that are restricted with it."""

    ABSTRACT_UNIX_SOCKET = 1 << 0
    SIGNAL = 1 << 1


_SINCE = {FileRight.REFER: 2, FileRight.TRUNCATE: 3, FileRight.IOCTL_DEV: 5}
"""The versions of Landlock that introduced rights; the first one has all others."""
_OF_A_FILE = (
    FileRight.EXECUTE | FileRight.WRITE_FILE | FileRight.READ_FILE | FileRight.TRUNCATE | FileRight.IOCTL_DEV
)
"""A rule about a file that names another right is refused."""
ALL_RIGHTS = FileRight(sum(FileRight))
READ_AND_EXECUTE = FileRight.EXECUTE | FileRight.READ_FILE | FileRight.READ_DIR

CallKernel = Callable[..., int]
"""Makes a system call with its number and arguments; gives its result, or raises `OSError`."""


def call_kernel(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call."""
    words = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    result = int(_load_syscall()(ctypes.c_long(number), *words))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


@functools.cache
def _load_syscall() -> Callable[..., int]:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    return syscall


def find_version(call: CallKernel = call_kernel) -> int:
    """The version of Landlock that the kernel has; 0 if it has none, or none for this process."""
    if sys.platform != "linux":
        return 0
    try:
        # The kernel may be too old or have it switched off, and a container may refuse unknown calls with any
        # error.
        return max(0, call(_CREATE_RULESET, None, 0, _VERSION))
    except OSError:
        return 0


def restrict(rights: Mapping[Path, FileRight], call: CallKernel = call_kernel) -> None:
    """Give up all files but these, for good; signals and abstract sockets of others, too, from version 6 on.

    Open files stay open. The process must have one thread, since others would keep what they have, and
    must gain no privileges (`PR_SET_NO_NEW_PRIVS`). A rule about a file in /proc needs that file: it is held
    open, since the kernel would make another one of it after it had freed its caches.

    Args:
        rights: the rights that remain to a file, or to everything in a folder. Paths that are not there
            count as nothing.
        call: makes system calls.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    version = find_version(call)
    if version == 0:
        raise OSError("the kernel has no Landlock")
    if len(list(_THREADS.iterdir())) > 1:
        raise OSError("the process has more than one thread")
    known = find_known_rights(version)
    attributes = build_attributes(version)
    ruleset = call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, allowed in rights.items():
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _add_rule(call, ruleset, path, allowed & known)
        call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def find_known_rights(version: int) -> FileRight:
    """The rights that a version can take away."""
    return FileRight(sum(right for right in FileRight if _SINCE.get(right, 1) <= version))


def build_attributes(version: int) -> bytes:
    """The `struct landlock_ruleset_attr` for a version: all rights to files, no ports, and all scopes."""
    words = [int(find_known_rights(version))]
    if version >= _TCP_SINCE:
        words.append(0)
    if version >= _SCOPES_SINCE:
        words.append(int(LandlockScope.ABSTRACT_UNIX_SOCKET | LandlockScope.SIGNAL))
    return struct.pack(f"={len(words)}Q", *words)


def _add_rule(call: CallKernel, ruleset: int, path: Path, allowed: FileRight) -> None:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            allowed &= _OF_A_FILE
        call(_ADD_RULE, ruleset, _BENEATH, _FILE_RULE.pack(int(allowed), file), 0)
    finally:
        if not path.is_relative_to(_PROC):
            os.close(file)


class Confinement(StrEnum):
    """Whether a worker confines user code."""

    OFF = "off"
    ON = "on"
    """Where the kernel can; where it cannot, user code runs unconfined, and its run has a notice."""
    REQUIRED = "required"
    """Nothing is run where the kernel cannot."""

    def check(self) -> None:
        """Refuse with a `UserError` what this machine cannot do."""
        if self is Confinement.REQUIRED and find_version() == 0:
            raise UserError("--require-confinement: the kernel has no Landlock, which confines user code")
