"""What a process asks of the kernel for itself, by prctl(2); on Linux alone.

A program calls `become_undumpable` before it does anything else: `execve` makes its process dumpable again.
"""

import ctypes
import os
import signal
import sys

DEBUGGABLE = "OKU_DEBUGGABLE"
"""The variable that, unless it is empty, leaves processes open to debuggers and profilers of their user."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36


def may_be_debugged() -> bool:
    """Whether the user wants to look into the processes of Oku."""
    return bool(os.environ.get(DEBUGGABLE))


def become_undumpable() -> None:
    """Close this process to other processes of its user, unless `OKU_DEBUGGABLE` is set.

    Only a process that may trace any other can then read its memory, environment, mappings or open files. It
    leaves no core dump. Processes that it forks are closed, too, until they execute another program.
    """
    if sys.platform == "linux" and not may_be_debugged():
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def die_with(parent: int) -> bool:
    """Have the kernel kill this process when its parent dies; return whether that is alive still.

    The parent names itself: by now another process may have adopted this one.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return os.getppid() == parent


def adopt_orphans() -> bool:
    """Have orphans among the descendants of this process become its children; return whether they do."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
