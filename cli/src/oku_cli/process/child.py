"""Starts, watches and ends a child process of the local stack."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from oku_cli.process import die_with_parent
from oku_cli.process.sealed_program import seal_program
from oku_cli.process.secret_variables import FLAG, hand_over
from oku_core.process.private_files import open_private

MOST_LOG_BYTES = 16_000_000
"""A larger log starts anew; its content moves to the older file beside it."""
_OLDER = ".1"
_TAIL_BYTES = 65_536
_UMASK = 0o077
"""Only their owner can read the files that children write, the broker's included."""
DIE_WITH_PARENT = [sys.executable, "-I", "-S", die_with_parent.__file__]
"""Makes a command die with its parent; the process id of the parent and the command come behind it."""


@dataclass(frozen=True, kw_only=True)
class ChildInputs:
    """What a child gets beside its arguments and its environment, which other processes can see.

    A child that gets anything secret runs a sealed copy of its program where that is possible.

    Args:
        sockets: the descriptors that it inherits at each start.
        text: its standard input.
        variables: what a command of Oku takes as environment variables, by the socket of `--variables-fd`.
    """

    sockets: Sequence[int] = ()
    text: str = ""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_secrets(self) -> bool:
        """Whether the child has something to keep from others."""
        return bool(self.text or self.variables)


NO_INPUTS = ChildInputs()


class Child:
    """Runs a process that dies with this one, writes to a file and does not get the terminal's Ctrl-C.

    Its environment is complete.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        folder: Path | None = None,
        inputs: ChildInputs = NO_INPUTS,
    ) -> None:
        self.name = name
        self.command = tuple(command)
        self._log = log
        self.environment = dict(environment)
        self.folder = folder
        self.inputs = inputs
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    @property
    def pid(self) -> int:
        """The process id; 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process, for the first time or again."""
        self.bound_log()
        with ExitStack() as stack:
            log = open_private(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            output = stack.enter_context(os.fdopen(log, "ab"))
            self._process = self._spawn(output, stack)
        self.started_at = time.monotonic()

    def _spawn(self, output: IO[bytes], stack: ExitStack) -> "subprocess.Popen[bytes]":
        """Start the process; what `stack` holds is needed until then."""
        given: int | socket.socket = subprocess.DEVNULL
        if self.inputs.text:
            given = stack.enter_context(_send(self.inputs.text))
        if not self.inputs.variables:
            return self._execute(self.command, self.inputs.sockets, given, output)
        ours, theirs = socket.socketpair()
        with theirs:
            words = (*self.command, FLAG, str(theirs.fileno()))
            try:
                process = self._execute(words, (*self.inputs.sockets, theirs.fileno()), given, output)
            except BaseException:
                ours.close()
                raise
        # A thread, because the event loop may be busy for as long as the child loads its modules.
        arguments = (ours, process.pid, self.inputs.variables)
        threading.Thread(target=hand_over, args=arguments, name=f"keys of {self.name}", daemon=True).start()
        return process

    def _execute(
        self, words: Sequence[str], sockets: Sequence[int], given: int | socket.socket, output: IO[bytes]
    ) -> "subprocess.Popen[bytes]":
        copies = (
            [seal_program(path) for path in (sys.executable, words[0])] if self.inputs.has_secrets else []
        )
        sealed = [] if None in copies else [copy for copy in copies if copy is not None]
        parent = f"{os.getpid()}:{sealed[-1]}" if sealed else str(os.getpid())
        # Not from another thread: the child dies with the thread that starts it.
        execute = partial[subprocess.Popen[bytes]](
            subprocess.Popen,
            [*DIE_WITH_PARENT, parent, *words],
            stdin=given,
            stdout=output,
            stderr=output,
            env=self.environment,
            cwd=self.folder,
            pass_fds=[*sockets, *sealed],
            umask=_UMASK,
            start_new_session=True,
        )
        if sealed:
            with suppress(OSError):  # the system executes nothing from memory, or has no /proc
                return execute(executable=f"/proc/self/fd/{sealed[0]}")
        return execute()

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
            # Outside Linux the command is a child of the script, so the whole group is killed. Its number is
            # the pid of the script, which is not reused before the script is waited for. macOS refuses to
            # signal processes that are dead already.
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


@contextmanager
def _send(text: str) -> Iterator[socket.socket]:
    """A socket from which a process reads a short text; unlike a pipe, it cannot be opened through /proc."""
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(text.encode(errors="surrogateescape"))
        yield theirs


def describe_death(code: int) -> str:
    """Format an exit code for people: `signal 9` or `exit code 1`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
