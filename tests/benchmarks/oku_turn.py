"""A turn of Oku: the real `oku run` with its whole local stack, in a data folder that goes with the turn."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from oku_cli.data_dir import DataDir
from oku_core.summary import Summary

from .turn import Stage, Turn

WORKER = "worker-1"
"""What the stack calls its first worker."""
COORDINATOR = "coordinator"


@dataclass(frozen=True, kw_only=True)
class OkuTurn:
    """A turn, and the summary that `oku run --json` wrote."""

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
    """The processes of the running stack by name, `oku run` itself as `oku`."""
    document = read_stack(data_dir)
    return {"oku": document["pid"]} | document["children"] if document else {}


@contextmanager
def open_data_dir(stage: Stage) -> Iterator[DataDir]:
    """A data folder for one run, on the disk where a user's would be."""
    with tempfile.TemporaryDirectory(dir=stage.folder, prefix="oku-", ignore_cleanup_errors=True) as folder:
        yield DataDir(Path(folder))


def play_oku(
    stage: Stage, data_dir: DataDir, *, requests: int, concurrency: int, workers: int = 1
) -> OkuTurn:
    """Run `oku run` against the target of the stage; `BenchmarkError` unless it completes."""

    def command(account: Path) -> list[str]:
        return [
            sys.executable, "-m", "oku_cli", "run", "--url", stage.target.url, "--requests", str(requests),
            "--concurrency", str(concurrency), "--workers", str(workers), "--quiet",
            "--json", str(account), "--data-dir", str(data_dir.path),
        ]  # fmt: skip

    turn = stage.play("oku", command, lambda: find_pids(data_dir))
    return OkuTurn(turn=turn, summary=msgspec.convert(turn.account, Summary))
