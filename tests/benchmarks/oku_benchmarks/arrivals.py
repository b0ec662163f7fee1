"""A target, in C, that notes when each request arrived, and how well arrivals keep to a constant rate.

The plan is `rate` requests in each second, one every 1 / rate. It is laid where it fits best, since a load
generator may begin when it likes.
"""

import shutil
import subprocess
import tempfile
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from oku_benchmarks.report import BenchmarkError
from oku_benchmarks.targets import TargetProcess
from oku_core.accounting.histogram import find_rank

_SOURCE = Path(__file__).with_name("arrival_server.c")
_SHARED_MEMORY = Path("/dev/shm")  # nothing is written to a disk while it serves
_HEADER, _WIDTH, _INTEGER = 8, 3, 8
_SECOND = 10**9
_COARSE_NS, _FINE_NS = 10**6, 10**4
_EARLY = 0.01
"""The share of requests that may be early when the plan is laid: a tool may open connections by them."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load at a constant rate, whose target may stop answering for a while."""

    rate: int
    run_s: int
    freeze_at_s: float = 0.0
    freeze_s: float = 0.0
    delay_ms: float = 0.0

    def list_waits_ms(self) -> list[float]:
        """What each planned request would have waited from when it was due, the shortest first."""
        ends_s = self.freeze_at_s + self.freeze_s
        dues_s = ((index + 0.5) / self.rate for index in range(self.rate * self.run_s))
        answers_s = ((due_s, due_s + self.delay_ms / 1e3) for due_s in dues_s)
        return sorted(
            ((ends_s if self.freeze_at_s <= answer_s < ends_s else answer_s) - due_s) * 1e3
            for due_s, answer_s in answers_s
        )


class ArrivalTarget(TargetProcess):
    """Serves from entering to leaving."""

    def __init__(self, program: Path, folder: Path, load: Load) -> None:
        self._records = folder / "records"
        command = (
            str(program), str(folder / "address"), str(self._records), str(2 * load.rate * load.run_s),
            *(str(round(1e3 * each)) for each in (load.delay_ms, load.freeze_at_s, load.freeze_s)),
        )  # fmt: skip
        super().__init__(command, folder, folder / "address")

    def read_served(self) -> int:
        """How many requests it has received."""
        with self._records.open("rb") as file:
            return array("q", file.read(_INTEGER))[0]

    def read_arrivals(self) -> list[int]:
        """When each request arrived, in ns and in order; the kernel stamps it while the client sends."""
        with self._records.open("rb") as file:
            file.seek(_HEADER * _INTEGER)
            figures = array("q", file.read(self.read_served() * _WIDTH * _INTEGER))
        return sorted(figures[::_WIDTH])


@contextmanager
def open_arrival_target(program: Path, folder: Path, load: Load) -> Iterator[ArrivalTarget]:
    """A target whose records are in shared memory where that can be written."""
    try:
        path = Path(tempfile.mkdtemp(dir=_SHARED_MEMORY, prefix="oku-bench-"))
    except OSError:
        path = Path(tempfile.mkdtemp(dir=folder, prefix="records-"))
    try:
        with ArrivalTarget(program, path, load) as target:
            yield target
    finally:
        shutil.rmtree(path, ignore_errors=True)


def build_server(folder: Path) -> Path:
    """Compile the server into a folder; its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise BenchmarkError("there is no cc to build the target with (Debian: apt install gcc libc6-dev)")
    program = folder / "arrival_server"
    command = [compiler, "-O2", "-o", str(program), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"the target could not be built: {done.stderr.strip().splitlines()[-1]}")
    return program


@dataclass(frozen=True, kw_only=True)
class Punctuality:
    """What a target saw of a plan: seconds whose count is off by more than one, and by how much the worst.

    `late_ms` is how far the k-th arrival is behind the k-th time of the plan: p50, p99, p99.9.
    """

    arrived: int
    off_seconds: int
    worst_off: int
    late_ms: tuple[float, float, float]


def judge_arrivals(arrivals: Sequence[int], rate: int, run_s: int) -> Punctuality:
    """Judge at least two arrivals, in ns and in order."""
    off = [abs(count - rate) for count in count_seconds(arrivals, rate, run_s)]
    return Punctuality(
        arrived=len(arrivals),
        off_seconds=sum(each > 1 for each in off),
        worst_off=max(off),
        late_ms=measure_lateness(arrivals, rate),
    )


def count_seconds(arrivals: Sequence[int], rate: int, run_s: int) -> list[int]:
    """The arrivals of each second, from the beginning near the first arrival that fits best."""

    def count(begin: int) -> list[int]:
        borders = [bisect_left(arrivals, begin + second * _SECOND) for second in range(run_s + 1)]
        return [after - before for before, after in pairwise(borders)]

    def judge(begin: int) -> int:
        return sum(abs(each - rate) for each in count(begin))

    first = arrivals[0]
    coarse = min(range(first - _SECOND, first + _SECOND, _COARSE_NS), key=judge)
    return count(min(range(coarse - _COARSE_NS, coarse + _COARSE_NS + 1, _FINE_NS), key=judge))


def measure_lateness(arrivals: Sequence[int], rate: int) -> tuple[float, float, float]:
    """The p50, p99 and p99.9 of the lateness in ms; one request in a hundred may be early."""
    behind = sorted(arrived - (2 * rank + 1) * _SECOND // (2 * rate) for rank, arrived in enumerate(arrivals))
    origin = behind[int(_EARLY * len(behind))]
    p50, p99, p99_9 = (behind[find_rank(each, len(behind)) - 1] - origin for each in (0.5, 0.99, 0.999))
    return p50 / 1e6, p99 / 1e6, p99_9 / 1e6
