"""Makes a command die with its parent: `python -I -S die_with_parent.py PARENT COMMAND …` becomes COMMAND.

Not even `kill -9` of the parent leaves the command behind. On Linux the kernel sees to that; elsewhere this
process stays, polls the pid of its parent, and ends the command when it changes. The script imports nothing
of Oku, so that it starts in milliseconds.
"""

import ctypes
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.2


def die_with_parent(parent: int, command: list[str]) -> None:
    """Become `command`, or watch over it, unless the process `parent` has died by now.

    The parent names itself: when this process gets to ask who it is, it may be somebody else's child already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    if sys.platform == "linux":
        os.execvp(command[0], command)  # noqa: S606  # no shell is wanted
    import subprocess  # noqa: PLC0415  # it takes longer to load than all else, and Linux has no use for it

    child = subprocess.Popen(command, close_fds=False)  # noqa: S603  # it may have been given sockets
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while child.poll() is None:
        if os.getppid() != parent:
            child.kill()
        time.sleep(_LOOK_S)
    sys.exit(child.returncode)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]), sys.argv[2:])
