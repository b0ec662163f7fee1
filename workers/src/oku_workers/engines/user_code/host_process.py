"""The host: the child process of a worker that runs user code, and the socket over which they speak.

It is a process of its own because user code may block, crash or patch the standard library, and none of that
may touch leases, heartbeats or the account. It dies with its worker.
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Protocol

from oku_core.messaging.process_ends import HostEndReason
from oku_core.user_code.messages import FrameReader, FromHost, Leaving, ToHost, frame
from oku_core.user_code.slots import Slots, create_slots
from oku_workers.engines.contract.user_code_host import Isolation, ProcessEnd, explain_end
from oku_workers.engines.user_code.host_output import PrintLine, log_output, redact_message
from oku_workers.engines.user_code.oom_watch import OomWatch
from oku_workers.engines.user_code.orphans import bury_orphans, end_orphans, forget_host, register_host

_log = logging.getLogger(__name__)

_LAST_WORDS_S = 1.0
_DATA, _NEARLY_ALL = 5, 0.95
"""The field of /proc/PID/statm with the pages of data (proc(5)), and the share of its limit that is nearly
all of it."""


class HostListener(Protocol):
    """Receives the messages of a host."""

    def on_message(self, message: object) -> None:
        """Handle a message."""

    def on_end(self) -> None:
        """Handle the end of the host or of its socket; called once."""


class HostProcess(asyncio.Protocol):
    """One host; belongs to the thread of the event loop.

    Args:
        kind: which host, an engine of user code.
        folder: where it runs.
        listener: receives its messages.
        print_line: takes each line that it prints.

    Attributes:
        slots: shared with it.
    """

    def __init__(
        self,
        kind: str,
        folder: Path,
        isolation: Isolation,
        listener: HostListener,
        print_line: PrintLine,
    ) -> None:
        self._isolation = isolation
        self._listener = listener
        self._reader = FrameReader(FromHost)
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._is_over = False
        self._silent = asyncio.Event()
        self._oom_watch = OomWatch()
        self._last_word: ProcessEnd | None = None
        ours, theirs = socket.socketpair()
        memory = create_slots()
        output, output_end = os.pipe()
        try:
            self.slots = Slots(memory)
            command = _build_command(kind, theirs.fileno(), memory, isolation)
            self._process = register_host(
                lambda: subprocess.Popen(  # noqa: S603  # our own interpreter and module
                    command,
                    cwd=folder,
                    env=dict(isolation.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output_end,
                    stderr=output_end,
                    pass_fds=(theirs.fileno(), memory),
                    start_new_session=True,  # Ctrl-C is for the command, which ends its workers in order
                )
            )
        except OSError:
            os.close(output)
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(memory)
            os.close(output_end)
        if isolation.niceness:
            with contextlib.suppress(OSError):  # it may have ended already
                os.setpriority(os.PRIO_PROCESS, self._process.pid, isolation.niceness)
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(self._connect(ours))
        self._printing = loop.create_task(log_output(output, print_line))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, message: ToHost) -> None:
        """Send it a message; a host that has ended ignores it."""
        data = frame(message)
        if self._transport is None:
            self._unsent.append(data)
        elif not self._is_over:
            self._transport.write(data)

    def has_ended(self) -> bool:
        """Whether the process has ended, even if another process holds its socket open."""
        self._oom_watch.poll()
        if self._isolation.adopts:
            bury_orphans()
        return self._process.poll() is not None

    @property
    def is_at_memory_limit(self) -> bool:
        """Whether it holds nearly all the memory that it may hold."""
        limit = self._isolation.memory_bytes
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_bytes().split()[_DATA])
        except (OSError, IndexError):  # it is gone, or the system has no such file
            return False
        return limit > 0 and pages * resource.getpagesize() > _NEARLY_ALL * limit

    def kill(self) -> None:
        """End it at once, with the processes that it has started."""
        if self._process.returncode is not None:
            return  # its number may be another process's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def wait(self, ending_s: float) -> ProcessEnd:
        """Wait until it has ended and its last message is read; kill it if that takes too long.

        Returns how it ended; a call of `kill` looks like any other SIGKILL.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, ending_s)
        lives_on = self._process.poll() is None
        out_of_memory = self._oom_watch.has_risen()
        self.kill()
        code = await asyncio.to_thread(self._bury)
        # A process that user code has started in another session may hold its socket open.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._silent.wait(), _LAST_WORDS_S)
        if lives_on:
            return ProcessEnd(HostEndReason.NO_ANSWER, "it closed its connection but did not end")
        return explain_end(code, out_of_memory=out_of_memory, last_word=self._last_word)

    def close(self) -> None:
        """Stop reading its messages; kill it unless its end was awaited."""
        if self._process.returncode is None:
            self.kill()
            threading.Thread(target=self._bury, name="bury host", daemon=True).start()
        forget_host(self._process.pid)
        self._is_over = True
        self._connecting.cancel()
        self._printing.cancel()
        if self._transport is not None:
            self._transport.close()
        self.slots.close()

    def _bury(self) -> int:
        """Wait for its end, end its orphans, and return its exit code. This blocks."""
        code = self._process.wait()
        forget_host(self._process.pid)
        if self._isolation.adopts and (orphans := end_orphans()):
            _log.warning("user code has left %d processes behind, which are ended", orphans)
        return code

    async def _connect(self, ours: socket.socket) -> None:
        ours.setblocking(False)  # noqa: FBT003  # its only argument
        transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=ours)
        self._transport = transport
        for data in self._unsent:
            transport.write(data)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        """Read messages of the host."""
        try:
            for message in map(redact_message, self._reader.feed(data)):
                if isinstance(message, Leaving):
                    reason = HostEndReason.MEMORY_LIMIT if message.is_memory else HostEndReason.EXITED
                    self._last_word = ProcessEnd(reason, message.text)
                elif not self._is_over:
                    self._listener.on_message(message)
        except ValueError as error:
            # User code can reach the socket; malformed bytes are not from the host.
            _log.error("the process of the user code has said what is not a message: %s", error)
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # how it ended is the exit code
        """The host has closed its end."""
        self._silent.set()
        if not self._is_over:
            self._listener.on_end()


def _build_command(kind: str, connection: int, slots: int, isolation: Isolation) -> list[str]:
    """The command of a host, which imports nothing from its folder before it is confined.

    It decodes the names of files as its worker does.
    """
    mode = ("-X", "utf8") if sys.flags.utf8_mode else ()
    numbers = (connection, slots, os.getpid(), isolation.memory_bytes)
    return [sys.executable, "-P", *mode, "-m", "oku.host", kind, *map(str, numbers)]
