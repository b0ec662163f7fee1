"""Drops the rights of a host before it loads user code; user code cannot regain them.

It dies with its worker and leaves no core dump. It and what it starts gain no privileges, and cannot change
how other processes run. Its memory has a limit, and if the machine runs out of memory the kernel
kills it before its worker.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

from oku.sandbox.syscall_filter import filter_system_calls
from oku_core.process.prctl import end_with_parent

_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION = 0x20080522
"""`_LINUX_CAPABILITY_VERSION_3` of linux/capability.h; with it come two sets of three words."""
_ENDED_FIRST = "1000"
"""The highest `oom_score_adj`."""


class AbandonedError(Exception):
    """The worker has gone."""


def confine(parent: int, memory_bytes: int) -> None:
    """Give up what user code does not need; the first thing that a host does.

    Args:
        parent: the process id of its worker.
        memory_bytes: how much memory it may hold; 0 without a limit.

    Raises:
        AbandonedError: the worker has gone already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not end_with_parent(parent):
        raise AbandonedError
    if sys.platform == "linux":
        _confine_on_linux(memory_bytes)


def _confine_on_linux(memory_bytes: int) -> None:
    give_up_privileges()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_ENDED_FIRST)
    if memory_bytes:
        _limit_memory(memory_bytes)
    filter_system_calls()  # without it, what user code changes of its worker still ends with the run


def give_up_privileges() -> None:
    """Drop all capabilities, and gain none by any program; on Linux alone.

    A process of root could read the memory of its worker by them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check(libc.capset(header, bytes(2 * 3 * 4)))


def _limit_memory(memory_bytes: int) -> None:
    """Limit what a process holds for itself, so that one more byte raises `MemoryError`.

    It is the limit of data, not that of addresses, which counts mapped and reserved memory, too: shared
    libraries, and the arenas of threads, many times the memory that is used.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory_bytes if hard == resource.RLIM_INFINITY else min(hard, memory_bytes)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
