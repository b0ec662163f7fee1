"""One process of `oku server` as the target of contestants, on a free port of loopback."""

import sys
from pathlib import Path

from oku_benchmarks.measuring.target_process import TargetProcess
from oku_server.counts.count_store import read_served
from oku_server.counts.count_table import NO_RUN


class DelayServer(TargetProcess):
    """Serves from entering to leaving.

    Args:
        folder: its counts and its log.
        delay: before each answer.
        error_rate: fraction of requests that are answered with status 500.
    """

    def __init__(self, folder: Path, delay: str = "0s", error_rate: float = 0.0) -> None:
        self._counts = folder / "counts"
        ready = folder / "target.address"
        command = (
            sys.executable, "-m", "oku_cli", "server", "--port", "0", "--processes", "1", "--delay", delay,
            "--error-rate", str(error_rate), "--counts-dir", str(self._counts),
            "--ready-file", str(ready),
        )  # fmt: skip
        super().__init__(command, folder / "target.log", ready)

    def read_served(self) -> int:
        """How many requests it has received, read from its shared memory: it does not notice."""
        return read_served(self._counts, NO_RUN)
