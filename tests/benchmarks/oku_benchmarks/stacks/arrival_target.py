"""The arrival server as a target: built here, in C, and its records as they are read."""

import shutil
import subprocess
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.target_process import TargetProcess

_SOURCE = Path(__file__).with_name("arrival_server.c")
_SHARED_MEMORY = Path("/dev/shm")  # nothing is written to a disk while it serves
_HEADER = 8
_WIDTH = 3
_INTEGER = 8


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How the target answers.

    Args:
        requests: how many it can keep records of.
        delay_ms: between a request and its answer.
        freeze_at_s: after the first request, when it stops answering.
        freeze_s: for how long.
    """

    requests: int
    delay_ms: float = 0.0
    freeze_at_s: float = 0.0
    freeze_s: float = 0.0


class Record(NamedTuple):
    """One request, in the order in which they came.

    Attributes:
        arrived: when its bytes were there, in ns.
        answered: when its answer was written; 0 if it never was.
        number: the number that its path ends with; -1 for none.
    """

    arrived: int
    answered: int
    number: int


class ArrivalTarget(TargetProcess):
    """Serves from entering to leaving.

    Args:
        program: what `build_server` has built.
        folder: for its files.
        manner: how it answers.
    """

    def __init__(self, program: Path, folder: Path, manner: Manner) -> None:
        self._records = folder / "records"
        command = (
            str(program), str(folder / "address"), str(self._records), str(manner.requests),
            str(round(manner.delay_ms * 1e3)), str(round(manner.freeze_at_s * 1e3)),
            str(round(manner.freeze_s * 1e3)),
        )  # fmt: skip
        super().__init__(command, folder / "target.log", folder / "address")

    def read_served(self) -> int:
        """How many requests it has received."""
        return self._read_header()[0]

    def is_stamped_by_kernel(self) -> bool:
        """Whether the kernel has stamped every arrival, free of this process's own delays."""
        received, _, _, by_kernel, *_ = self._read_header()
        return by_kernel >= received

    def read_arrivals(self) -> list[int]:
        """When each request arrived, in order."""
        return sorted(self._read_figures()[::_WIDTH])

    def read_records(self) -> list[Record]:
        """All requests so far that it has records of."""
        figures = self._read_figures()
        return [Record(*figures[at : at + _WIDTH]) for at in range(0, len(figures), _WIDTH)]

    def _read_figures(self) -> "array[int]":
        with self._records.open("rb") as file:
            file.seek(_HEADER * _INTEGER)
            return array("q", file.read(self.read_served() * _WIDTH * _INTEGER))

    def _read_header(self) -> "array[int]":
        with self._records.open("rb") as file:
            return array("q", file.read(_HEADER * _INTEGER))


def build_server(folder: Path) -> Path:
    """Compile the server into a folder; its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise BenchmarkError("there is no cc to build the target with (Debian: apt install gcc libc6-dev)")
    program = folder / "arrival_server"
    result = subprocess.run(
        [compiler, "-O2", "-o", str(program), str(_SOURCE)], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise BenchmarkError(f"the target could not be built: {result.stderr.strip().splitlines()[-1]}")
    return program


@contextmanager
def open_records_folder(folder: Path) -> Iterator[Path]:
    """A folder in shared memory while it is needed; one in `folder` on a system that has none."""
    place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else folder
    path = Path(tempfile.mkdtemp(dir=place, prefix="oku-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
