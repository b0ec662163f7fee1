"""A checkout of Oku whose commands a case runs: this one, or an older one that it is compared with.

An older one has a virtual environment of its own in `.venv`, which `./task setup` makes there. What differs
between the commands of versions stands here, what differs between their ledgers in `ledger_reader`.
"""

import csv
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from oku_benchmarks.error import BenchmarkError

_OUTCOMES = (
    "ok",
    "unexpected_status",
    "failed_check",
    "timeout",
    "connect_error",
    "disconnected",
    "protocol_error",
)


class Checkout:
    """A checkout.

    Args:
        folder: its top; None for the one that this process belongs to.
    """

    def __init__(self, folder: Path | None = None) -> None:
        python = folder.absolute() / ".venv/bin/python" if folder else Path(sys.executable)
        if not python.exists():
            raise BenchmarkError(f"{folder} has no .venv: run ./task setup there")
        self.python = str(python)
        """The interpreter of its environment."""
        self.oku = str(python.with_name("oku"))
        """The command."""

    @property
    def summary_flag(self) -> str:
        """The flag of `oku run` that names the file of the summary."""
        return "--summary-json" if self.has("run", "--summary-json") else "--json"

    def has(self, command: str, flag: str) -> bool:
        """Whether a command has a flag."""
        return flag in _fetch_help(self.oku, command).split()

    def sum_series(self, run: str, where: Sequence[str], folder: Path) -> int:
        """The sum of all outcomes in the seconds of a run, as its CSV tells them.

        Args:
            run: its id.
            where: the flags that name the coordinator or the data folder.
            folder: for the file.
        """
        file = folder / "series.csv"
        verb = "report" if self.has("report", "--csv") else "export"
        _call(self.oku, verb, run, "--csv", str(file), *where)
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        if rows and not set(_OUTCOMES) & set(rows[0]):
            raise BenchmarkError(f"the CSV of {run} has no outcomes, but {', '.join(rows[0])}")
        return round(sum(float(row.get(name) or 0) for row in rows for name in _OUTCOMES))

    def call(self, *arguments: str) -> str:
        """Run a command to its end; what it prints."""
        return _call(self.oku, *arguments)


@cache
def _fetch_help(oku: str, command: str) -> str:
    return _call(oku, command, "--help")


def _call(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BenchmarkError(f"oku {command[1]} failed: {result.stderr.strip()[-300:]}")
    return result.stdout
