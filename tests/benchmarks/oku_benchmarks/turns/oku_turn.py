"""A turn of Oku: the real `oku run` with its whole local stack, in a data folder that goes with the turn."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from oku_benchmarks.measuring.vitals import find_children
from oku_benchmarks.turns import terminal
from oku_benchmarks.turns.turn import Stage, Turn
from oku_cli.backends.data_dir import DataDir
from oku_core.summary.summary import Summary

WORKER = "worker-1"
"""What the stack calls its first worker."""
COORDINATOR = "coordinator"
AIOHTTP, HTTPTOOLS, NGHTTP2 = "aiohttp", "httptools", "nghttp2"
"""The engines."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What `oku run` is asked for.

    Args:
        requests: how many; 0 for what a rate and a duration make.
        concurrency: in flight, for each worker; 0 for Oku's default.
        workers: how many; 0 for the default of this machine.
        engine: that sends them.
        delay: of Oku's own delay servers; empty for a target that is there already.
        rate: of the open model, over all workers; empty for the closed one.
        duration: how long it is kept.
        late: what becomes of a request that could not be sent in time; empty for Oku's default.
        scenario: the file of user code whose iterations the requests are; empty for none.
        spec: a file that says what is asked, in place of the URL; empty for none.
    """

    requests: int = 0
    concurrency: int
    workers: int = 1
    engine: str = AIOHTTP
    delay: str = ""
    rate: str = ""
    duration: str = ""
    late: str = ""
    scenario: str = ""
    spec: str = ""

    def build_flags(self, url: str) -> list[str]:
        """Arguments of `oku run`; `url` may be empty."""
        if self.spec:
            url = ""
        flags = {
            ("host" if self.scenario else "url"): url.removesuffix("/{i}") if self.scenario else url,
            "requests": str(self.requests) if self.requests else "",
            "concurrency": str(self.concurrency) if self.concurrency else "",
            "workers": str(self.workers) if self.workers else "",
            "engine": "" if self.scenario else self.engine,
            "delay": self.delay,
            "rate": self.rate,
            "duration": self.duration,
            "late": self.late,
        }
        words = [word for key, value in flags.items() if value for word in (f"--{key}", value)]
        return [*filter(None, (self.scenario or self.spec,)), *words]


@dataclass(frozen=True, kw_only=True)
class OkuTurn:
    """A turn, and the summary that `oku run --summary-json` wrote."""

    turn: Turn
    summary: Summary


def read_stack(data_dir: DataDir) -> dict[str, Any] | None:
    """What the running stack has written down of itself; None before its start and after its end."""
    try:
        document: dict[str, Any] = json.loads(data_dir.stack_file.read_bytes())
    except FileNotFoundError:
        return None
    return document


def find_pids(data_dir: DataDir) -> dict[str, int]:
    """The processes of the running stack by name, `oku run` itself as `oku`, and those that these started."""
    document = read_stack(data_dir)
    if document is None:
        return {}
    children: dict[str, int] = document["children"]
    started = {
        f"{name}, process {number}": child
        for name, pid in children.items()
        if name.startswith(("server", "worker"))
        for number, child in enumerate(find_children(pid), 1)
    }
    return {"oku": document["pid"]} | children | started


@contextmanager
def open_data_dir(folder: Path) -> Iterator[DataDir]:
    """A data folder for one run, on the disk where a user's would be; what a failed run left stays there."""
    path = Path(tempfile.mkdtemp(dir=folder, prefix="oku-"))
    yield DataDir(path)
    shutil.rmtree(path, ignore_errors=True)


def play_oku(stage: Stage, data_dir: DataDir, load: Load, *, is_shown: bool = False) -> OkuTurn:
    """Run `oku run` against the target of the stage; `BenchmarkError` unless it completes.

    Args:
        stage: its target may have no URL: then Oku brings its own delay servers.
        data_dir: of the stack.
        load: what to run.
        is_shown: whether it runs in a terminal, with its live view.
    """

    def command(account: Path) -> list[str]:
        run = [sys.executable, "-m", "oku_cli", "run", *load.build_flags(stage.target.url)]
        run += ["--summary-json", str(account), "--data-dir", str(data_dir.path)]
        return [sys.executable, terminal.__file__, *run] if is_shown else [*run, "--quiet"]

    turn = stage.play("oku", command, lambda: find_pids(data_dir))
    return OkuTurn(turn=turn, summary=msgspec.convert(turn.account, Summary))
