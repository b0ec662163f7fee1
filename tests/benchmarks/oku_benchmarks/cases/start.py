"""How long the shortest run takes: from the command to its first request, and to the prompt.

`oku run -n 10` starts a broker, a coordinator, a worker and, without a URL, a delay server, makes ten
requests, accounts for them, prints the summary, ends everything and writes the report. Each is typed into a
terminal, in a new folder.
"""

import os
import re
import sys
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.target import Target
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.oku_turn import AIOHTTP, HTTPTOOLS, open_data_dir
from oku_benchmarks.turns.stopwatch import Command, Timing, time_command
from oku_cli.backends.data_dir import DataDir
from oku_server.counts.count_store import read_served

REQUESTS = 10
OWN_SERVERS, ONE_URL = "own delay server", "a URL"
_BEGINS = re.compile(r"run (\S+) begins")
_RESULT = "throughput"


class ShortRun(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    number: int
    """Of the round."""
    target: str
    engine: str
    timing: Timing


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs, in the order in which they were made."""

    runs: list[ShortRun]


class _OwnServer:
    """The delay server that a run brings: it is there, and its run has a name, only after a while.

    Args:
        data_dir: of the run.
    """

    url = ""

    def __init__(self, data_dir: DataDir) -> None:
        self._log = data_dir.logs / "coordinator.log"
        self._counts = data_dir.counts

    def read_served(self) -> int:
        """How many requests of the run it has received, read from its shared memory: it does not notice."""
        begun = _BEGINS.search(self._log.read_text()) if self._log.exists() else None
        if begun is None:
            return 0
        folders = {path.parent for path in self._counts.rglob("served-*.bin")}
        return sum(read_served(folder, begun[1]) for folder in folders)


def measure(plan: Plan, folder: Path) -> Results:
    """Every target and engine in each round."""
    runs = []
    with DelayServer(folder) as server:
        for number in range(1, plan.rounds + 1):
            for engine in (AIOHTTP, HTTPTOOLS):
                with open_data_dir(folder) as data_dir:
                    own = _time(data_dir, _OwnServer(data_dir), engine)
                with open_data_dir(folder) as data_dir:
                    other = _time(data_dir, server, engine)
                for target, timing in ((OWN_SERVERS, own), (ONE_URL, other)):
                    runs.append(ShortRun(number=number, target=target, engine=engine, timing=timing))
                    log(
                        f"  {target}, {engine}: first request after {timing.first_request_s} s,"
                        f" prompt after {timing.prompt_s} s"
                    )
    return Results(runs=runs)


def _time(data_dir: DataDir, target: Target, engine: str) -> Timing:
    urls = [target.url] if target.url else []
    flags = ["-n", str(REQUESTS), "--engine", engine, "--data-dir", str(data_dir.path)]
    words = [str(Path(sys.executable).with_name("oku")), "run", *urls, *flags]
    environment = {"PATH": os.environ["PATH"], "HOME": str(data_dir.path), "TERM": "xterm-256color"}
    command = Command(words=words, folder=data_dir.path, environment=environment, result=_RESULT)
    timing = time_command(command, target)
    if timing.exit_code != 0 or timing.requests != REQUESTS or timing.first_request_s is None:
        raise BenchmarkError(f"{' '.join(words)} ended with {timing.exit_code}, {timing.requests} requests")
    return timing
