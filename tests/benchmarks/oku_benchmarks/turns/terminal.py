"""Started as a script: `terminal.py COMMAND …` runs COMMAND as a person would, in a terminal of its own.

What the terminal shows is read all the time, as a terminal emulator does; only its end is kept and written to
standard output when COMMAND has ended. COMMAND dies with this process.
"""

import fcntl
import os
import pty
import struct
import sys
import termios

from oku_cli.process import die_with_parent

_ROWS, _COLUMNS = 50, 120
_KEPT_BYTES = 1 << 16


def run(command: list[str]) -> int:
    """Run a command to its end; its exit code."""
    parent = str(os.getpid())
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-I", "-S", die_with_parent.__file__, parent, *command])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    shown = b""
    while chunk := _read(terminal):
        shown = (shown + chunk)[-_KEPT_BYTES:]
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.stdout.buffer.write(shown)
    sys.stdout.flush()
    return code if code >= 0 else 128 - code


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""  # how a terminal without a process on its other side ends on Linux


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
