"""Makes a command die with its parent: `python -I -S die_with_parent.py PARENT COMMAND …` becomes COMMAND.

With PARENT:PROGRAM instead of PARENT, the file behind the descriptor PROGRAM is executed.

Not even `kill -9` of the parent leaves the command behind. On Linux the kernel sees to that; elsewhere this
process stays, polls the pid of its parent, and ends the command when it changes. The script imports nothing
of Oku, so that it starts in milliseconds.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.2


def die_with_parent(parent: int, command: list[str], program: int | None = None) -> None:
    """Become `command`, or watch over it, unless the process `parent` has died by now.

    The parent names itself: when this process gets to ask for its parent, it may have another one already. A
    `program` that the system does not execute from a descriptor is looked up by its name.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    if program is not None:
        os.set_inheritable(program, False)  # noqa: FBT003  # its only argument but the file
        with contextlib.suppress(OSError):
            os.execve(program, command, os.environ)  # noqa: S606  # no shell is wanted
    if sys.platform == "linux":
        os.execvp(command[0], command)  # noqa: S606  # no shell is wanted
    import subprocess  # noqa: PLC0415  # it takes longer to load than all else, and Linux has no use for it

    child = subprocess.Popen(command, close_fds=False)  # noqa: S603  # it may have been given sockets
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while child.poll() is None:
        if os.getppid() != parent:
            child.kill()
        time.sleep(_POLL_S)
    sys.exit(child.returncode)


if __name__ == "__main__":
    named_parent, _, named_program = sys.argv[1].partition(":")
    die_with_parent(int(named_parent), sys.argv[2:], int(named_program) if named_program else None)
