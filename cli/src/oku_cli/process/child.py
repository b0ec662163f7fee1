"""Starts, watches and ends a child process of the local stack."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from oku_cli.process import die_with_parent
from oku_core.process.private_files import open_private

MOST_LOG_BYTES = 16_000_000
"""A larger log starts anew; its content moves to the older file beside it."""
_OLDER = ".1"
_TAIL_BYTES = 65_536
_UMASK = 0o077
"""Only their owner can read the files that children write, the broker's included."""
DIE_WITH_PARENT = [sys.executable, "-I", "-S", die_with_parent.__file__]
"""What makes a command die with its parent; behind it come the process id of the parent and the command."""


class Child:
    """Runs a process that dies with this one, writes to a file and does not get the terminal's Ctrl-C.

    Args:
        name: the name shown to people.
        command: the command to run.
        log: the file for its output.
        environment: its complete environment.
        folder: its working directory; None for that of this process.
        inherited: the file descriptors that it inherits at each start.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        folder: Path | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self._log = log
        self.environment = dict(environment)
        self.folder = folder
        self.inherited = tuple(inherited)
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    @property
    def pid(self) -> int:
        """The process id; 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process, for the first time or again."""
        self.bound_log()
        with os.fdopen(open_private(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as output:
            # Not from another thread: the child dies with the thread that starts it.
            self._process = subprocess.Popen(  # noqa: S603  # commands of our own
                [*DIE_WITH_PARENT, str(os.getpid()), *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                cwd=self.folder,
                pass_fds=self.inherited,
                umask=_UMASK,
                start_new_session=True,
            )
        self.started_at = time.monotonic()

    def bound_log(self) -> None:
        """Start the log anew if it is too large; its content replaces the older file.

        The process keeps its file open: what it writes between the copy and the truncation is lost.
        """
        with suppress(OSError):  # a full disk bounds it, too
            if self._log.stat().st_size > MOST_LOG_BYTES:
                older = self._log.with_name(self._log.name + _OLDER)
                with (
                    self._log.open("rb") as source,
                    os.fdopen(open_private(older, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as target,
                ):
                    shutil.copyfileobj(source, target)
                os.truncate(self._log, 0)

    def find_death(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        return self._process.poll() if self._process else None

    @property
    def is_alive(self) -> bool:
        """Whether the process was started and still runs."""
        return self._find_living() is not None

    def terminate(self) -> None:
        """Ask the process to end."""
        if (process := self._find_living()) is not None:
            process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and everything that it has started."""
        if (process := self._find_living()) is not None:
            # Outside Linux the command is a child of the script, so the whole group is killed. Its number
            # is the pid of the script, which is not reused before somebody waits for the script. macOS
            # refuses to signal processes that are dead already.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the process; return False if it takes longer."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def read_last_line(self) -> str:
        """Return the last line that the process wrote."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""

    def _find_living(self) -> subprocess.Popen[bytes] | None:
        return self._process if self._process is not None and self._process.poll() is None else None


def describe_death(code: int) -> str:
    """Format an exit code for people: `signal 9` or `exit code 1`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
