"""One process of `oku server` as the target of contestants, on a free port of loopback."""

import os
import sys
import time
from pathlib import Path
from typing import Self

from oku_benchmarks.error import BenchmarkError
from oku_cli.process.child import Child
from oku_server.counts.count_store import read_served
from oku_server.counts.count_table import NO_RUN

_READY_S = 15.0


class DelayServer:
    """Serves from entering to leaving.

    Args:
        folder: its counts and its log.
        delay: before each answer.
        error_rate: fraction of requests that are answered with status 500.
    """

    def __init__(self, folder: Path, delay: str = "0s", error_rate: float = 0.0) -> None:
        self._counts = folder / "counts"
        self._ready = folder / "target.address"
        command = (
            sys.executable, "-m", "oku_cli", "server", "--port", "0", "--processes", "1", "--delay", delay,
            "--error-rate", str(error_rate), "--counts-dir", str(self._counts),
            "--ready-file", str(self._ready),
        )  # fmt: skip
        self._child = Child("target", command, folder / "target.log", os.environ)
        self.url = ""
        """Template of its URLs, with `{i}` for the index."""

    def __enter__(self) -> Self:
        """Start it and wait until it listens."""
        self._ready.unlink(missing_ok=True)
        self._child.start()
        deadline = time.monotonic() + _READY_S
        while not self._ready.exists():
            if time.monotonic() > deadline or self._child.find_death() is not None:
                self._child.kill()
                raise BenchmarkError(f"the delay server does not start: {self._child.read_last_line()}")
            time.sleep(0.02)
        self.url = f"http://{self._ready.read_text().strip()}/{{i}}"
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._child.terminate()
        if not self._child.wait(5.0):
            self._child.kill()
            self._child.wait(5.0)

    def read_served(self) -> int:
        """How many requests it has received, read from its shared memory: it does not notice."""
        return read_served(self._counts, NO_RUN)
