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


def adopt_orphans() -> bool:
    """Have orphans among the descendants of this process become its children; return whether they do."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end_with_parent(parent: int, *, by: signal.Signals = signal.SIGKILL) -> bool:
    """Have the kernel kill this process when its parent ends; return whether `parent` is still its parent.

    Args:
        parent: the process id of the parent, as that itself knows it. If it has ended already, this process
            may be the child of another one by now.
        by: the signal that this process gets then.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0)
    return os.getppid() == parent
