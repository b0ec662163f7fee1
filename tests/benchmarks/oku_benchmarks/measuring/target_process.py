"""A process of ours that is asked: it says in a file where it listens."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from oku_benchmarks.error import BenchmarkError
from oku_cli.process.child import Child

_READY_S = 15.0
_ENDS_S = 5.0


class TargetProcess:
    """Serves from entering to leaving.

    Args:
        command: what to start.
        log: gets its output.
        ready: the file in which it says its address.
    """

    def __init__(self, command: Sequence[str], log: Path, ready: Path) -> None:
        self._ready = ready
        self._child = Child("target", command, log, os.environ)
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
                raise BenchmarkError(f"the target does not start: {self._child.read_last_line()}")
            time.sleep(0.02)
        self.url = f"http://{self._ready.read_text().strip()}/{{i}}"
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._child.terminate()
        if not self._child.wait(_ENDS_S):
            self._child.kill()
            self._child.wait(_ENDS_S)
