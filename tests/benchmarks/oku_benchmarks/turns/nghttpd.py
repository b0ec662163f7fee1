"""nghttpd as a target: one thread that speaks HTTP/2 in clear text and answers with a small file.

It counts no requests. The kernel counts the bytes that it has written, and all answers on a connection have
as many, but for the first one and for the first with another `Date`. How many that is comes of two runs of
h2load beforehand, with different numbers of requests.
"""

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.install import require_program
from oku_benchmarks.measuring.target import pick_port
from oku_cli.process.child import Child

COUNTED_WITHIN = 0.002
"""How far its count may be off: what is written beside answers, as a share of all."""
_READY_S = 10.0
_FILE, _BODY = "hello", "Hello, World!"
FEW, MANY = 1_000, 6_000
"""Requests of h2load, to see what an answer is."""


class Nghttpd:
    """Serves from entering to leaving.

    Args:
        folder: its file and its log.
    """

    def __init__(self, folder: Path) -> None:
        documents = folder / "nghttpd"
        documents.mkdir()
        (documents / _FILE).write_text(_BODY)
        self._h2load = require_program("h2load")
        self._port = pick_port()
        command = (
            require_program("nghttpd"), "--no-tls", "--workers=1", "--address=127.0.0.1",
            f"--htdocs={documents}", str(self._port),
        )  # fmt: skip
        self._child = Child("nghttpd", command, folder / "nghttpd.log", os.environ)
        self._answer_bytes = 1.0
        self.url = f"http://127.0.0.1:{self._port}/{_FILE}?{{i}}"
        """Template of its URLs, with `{i}` for the index."""

    def __enter__(self) -> Self:
        """Start it, wait until it listens, and see how long an answer is."""
        self._child.start()
        try:
            self._await_listening()
            self._answer_bytes = self._measure_answer()
        except BenchmarkError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._child.terminate()
        if not self._child.wait(5.0):
            self._child.kill()
            self._child.wait(5.0)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def read_served(self) -> int:
        """How many requests it has answered, by the bytes that it has written."""
        return round(self._read_written() / self._answer_bytes)

    def _await_listening(self) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline or self._child.find_death() is not None:
                    raise BenchmarkError(f"nghttpd does not start: {self._child.read_last_line()}") from None
                time.sleep(0.02)
            else:
                return

    def _measure_answer(self) -> float:
        """Bytes of an answer, without what a connection costs."""
        few, many = self._measure_written(FEW), self._measure_written(MANY)
        return (many - few) / (MANY - FEW)

    def _measure_written(self, requests: int) -> int:
        before = self._read_written()
        command = [self._h2load, "-t1", "-c1", "-m10", f"-n{requests}", self.url.format(i=1)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or f" {requests} succeeded" not in done.stdout:
            raise BenchmarkError(f"h2load does not reach nghttpd: {done.stderr or done.stdout}")
        return self._read_written() - before

    def _read_written(self) -> int:
        """Bytes that the process has written, to connections and to its log."""
        counters = re.search(r"^wchar: (\d+)$", Path(f"/proc/{self.pid}/io").read_text(), re.MULTILINE)
        assert counters is not None
        return int(counters[1])
