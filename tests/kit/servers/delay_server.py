"""An `oku server` on a free port, started as a user starts it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

OKU = Path(sys.executable).parent / "oku"
PATIENCE_S = 10.0


class DelayServer:
    """Serves until it is ended.

    Args:
        folder: its log and its ready file.
        flags: of the command.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._log = folder / "log"
        ready_file = folder / "ready"
        command = [str(OKU), "server", "--port", "0", "--ready-file", str(ready_file), *flags]
        with self._log.open("wb") as log:
            # A session of its own, so that whatever it starts can be ended in the end.
            self.process = subprocess.Popen(command, stderr=log, stdout=log, start_new_session=True)
        until(lambda: ready_file.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log
        self.address = ready_file.read_text().rstrip("\n")
        self.url = f"http://{self.address}"
        host, _, port = self.address.rpartition(":")
        self.endpoint = (host.strip("[]"), int(port))

    @property
    def log(self) -> str:
        """What it said so far."""
        return self._log.read_text()

    @property
    def children(self) -> list[int]:
        """The process ids of its children."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def end(self) -> None:
        """Kill it and everything that it started, and wait."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Start:
    """Starts servers that end together.

    Args:
        folder: a folder for each of them is made here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[DelayServer] = []

    def __call__(self, *flags: str) -> DelayServer:
        """Start a server with these flags."""
        folder = self._folder / f"server-{len(self._servers)}"
        folder.mkdir()
        self._servers.append(DelayServer(folder, *flags))
        return self._servers[-1]

    def end(self) -> None:
        """End them all."""
        for server in self._servers:
            server.end()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other processes do."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
