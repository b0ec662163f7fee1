"""How many instructions of user space a client needs for a request, counted by callgrind.

Two runs of different length are compared, so that starting and ending are in neither: what is left belongs
to the requests that the longer one made more.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.install import find_program
from oku_benchmarks.turns.nginx import Nginx
from oku_benchmarks.turns.oku_turn import HTTPTOOLS
from oku_cli.process.child import Child

_SIZES = (1, 3)
_WRK_S = 1
_OKU_REQUESTS = 5_000
_TIMEOUT_S = 240.0


def count_wrk(nginx: Nginx, connections: int, folder: Path) -> float:
    """Instructions of `wrk -t1` for a request."""
    wrk, url = find_program("wrk"), nginx.url.format(i=1)
    assert wrk is not None
    return _count(nginx, folder, lambda size: [wrk, "-t1", f"-c{connections}", f"-d{size * _WRK_S}s", url])


def count_oku(nginx: Nginx, connections: int, folder: Path) -> float:
    """Instructions of a worker's lease runner and engine for a request, without its reports to the broker."""
    script = [sys.executable, "-m", "oku_benchmarks.contestants.lease_loop", nginx.url]
    return _count(
        nginx, folder, lambda size: [*script, str(size * _OKU_REQUESTS), str(connections), HTTPTOOLS]
    )


def _count(nginx: Nginx, folder: Path, build_command: Callable[[int], Sequence[str]]) -> float:
    totals, served = [], []
    for size in _SIZES:
        before = nginx.read_served()
        totals.append(_run(build_command(size), folder))
        served.append(nginx.read_served() - before)
    return round((totals[1] - totals[0]) / (served[1] - served[0]), 0)


def _run(command: Sequence[str], folder: Path) -> int:
    """Run a command under callgrind; all instructions that it needed."""
    callgrind, counts = find_program("valgrind"), folder / "callgrind.out"
    assert callgrind is not None
    counted = [callgrind, "--tool=callgrind", f"--callgrind-out-file={counts}", *command]
    child = Child("callgrind", counted, folder / "callgrind.log", os.environ)
    child.start()
    try:
        if not child.wait(_TIMEOUT_S) or child.find_death() != 0:
            raise BenchmarkError(f"callgrind does not get through: {child.read_last_line()}")
    finally:
        child.kill()
    total = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(), re.MULTILINE)
    if total is None:
        raise BenchmarkError(f"{counts} has no total")
    return int(total[1])
