"""A real `oku run` with its whole local stack, in a subprocess, to be watched, hurt and checked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.coordinators.transactions import read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_core.accounting.interval import Lengths
from oku_core.accounting.outcome import OUTCOMES
from oku_core.errors import UserError

OKU = [str(Path(sys.executable).with_name("oku"))]
_POLL_S = 0.02


Start = Callable[..., "LocalRun"]
"""Starts `oku` with arguments of its own, in a data folder of the test."""


@contextmanager
def starting_runs(folder: Path) -> Iterator[Start]:
    """Gives a `Start` for data folders below `folder`; what is left of the runs is ended after the block."""
    started: list[LocalRun] = []

    def start(*arguments: str, data_dir: str = "data") -> LocalRun:
        run = LocalRun(folder / data_dir, *arguments)
        started.append(run)
        return run

    try:
        yield start
    finally:
        for run in started:
            run.close()


def run_oku(*arguments: str, cwd: Path, given: str = "") -> "subprocess.CompletedProcess[str]":
    """Run `oku` to its end; `given` is its standard input."""
    return subprocess.run(
        [*OKU, *arguments], cwd=cwd, input=given, capture_output=True, text=True, timeout=60, check=False
    )


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str, every_s: float = _POLL_S) -> None:
    """Poll until `condition` holds; fails naming `what` when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(every_s)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def find_worker(zygote: int) -> int:
    """The worker that an `oku worker` has forked; before that, this process itself."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{zygote}/task").glob("*/children")]
    except OSError:
        return zygote
    return next((int(child) for text in lists for child in text.split()), zygote)


def sum_series(ledger_file: Path, run: str) -> dict[str, int]:
    """The outcomes of all seconds that a ledger keeps of a run."""
    ledger = Ledger(ledger_file, read_only=True)
    try:
        samples = read(ledger, fetch_history, run).samples
    finally:
        ledger.close()
    return {
        outcome: sum(sample.outcomes[place] for sample in samples) for place, outcome in enumerate(OUTCOMES)
    }


class LocalRun:
    """One `oku run` or `oku resume` in a data folder.

    Args:
        data_dir: its folder.
        arguments: of `oku`, without the data folder and the JSON file.
    """

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        self._json_file = data_dir.parent / f"{data_dir.name}-summary.json"
        self._output = (data_dir.parent / f"{data_dir.name}-output.txt").open("a+")
        self._json_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [*OKU, *arguments, "--data-dir", str(data_dir), "--summary-json", str(self._json_file)],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        self._started: dict[int, int] = {}
        """What the stack has started for each process that was sent a signal."""

    @property
    def output(self) -> str:
        """What it has printed so far."""
        self._output.flush()
        self._output.seek(0)
        return self._output.read()

    def children(self) -> dict[str, int]:
        """The processes of the stack by name; empty until it is up."""
        try:
            document: dict[str, Any] = json.loads((self.data_dir / "stack.json").read_text())
        except (OSError, json.JSONDecodeError):
            return {}
        if document["pid"] != self.process.pid:
            return {}  # of a stack that was killed here before; others may have got its process ids
        children: dict[str, int] = document["children"]
        return children

    def pid(self, name: str) -> int:
        """The process of one child; of a worker the one that does its work."""
        started = self.children()[name]
        return find_worker(started) if name.startswith("worker-") else started

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to one child; gives its process id."""
        pid, started = self.pid(name), self.children()[name]
        self._started[pid] = started
        os.kill(pid, number)
        return pid

    def wait_for_restart(self, name: str, old_pid: int) -> None:
        """Wait until a child that was killed runs again."""
        old = self._started.get(old_pid, old_pid)
        wait_until(lambda: self.children().get(name, old) != old, 10, f"{name} is started again")

    def lengths(self) -> Lengths:
        """How far its newest run has come."""
        try:
            ledger = Ledger(self.data_dir / "ledger.sqlite3", read_only=True)
        except UserError:
            return Lengths(0, 0, 0)  # it has not been made yet
        try:
            runs = read(ledger, fetch_runs)
            return read(ledger, fetch_snapshot, runs[0].run).lengths if runs else Lengths(0, 0, 0)
        finally:
            ledger.close()

    def worker_names(self) -> set[str]:
        """The workers that have accounted for something in its newest run."""
        ledger = Ledger(self.data_dir / "ledger.sqlite3", read_only=True)
        try:
            newest = read(ledger, fetch_runs)[0]
            return {worker.name for worker in read(ledger, fetch_snapshot, newest.run).workers}
        finally:
            ledger.close()

    def wait_for_run(self, timeout_s: float = 30) -> None:
        """Wait until its run is in the ledger."""
        self._wait(self._has_run, timeout_s, "the run is in the ledger")

    def fetch_summary(self, run: str) -> dict[str, Any]:
        """The summary of a run, whatever its state, once no command holds the data folder."""
        shown = run_oku("show", run, "--json", "--data-dir", str(self.data_dir), cwd=self.data_dir)
        assert shown.returncode == 0, shown.stderr
        summary: dict[str, Any] = json.loads(shown.stdout)
        return summary

    def run_id(self) -> str:
        """The id of its newest run."""
        ledger = Ledger(self.data_dir / "ledger.sqlite3", read_only=True)
        try:
            return read(ledger, fetch_runs)[0].run
        finally:
            ledger.close()

    def wait_for_accounted(self, count: int, timeout_s: float = 60) -> None:
        """Wait until so many requests are accounted."""
        self._wait(lambda: self.lengths().accounted >= count, timeout_s, f"{count} requests are accounted")

    def wait_for_leases(self, timeout_s: float = 30) -> None:
        """Wait until leases are out."""
        self._wait(lambda: self.lengths().leased > 0, timeout_s, "leases are out")

    def finish(self, timeout_s: float = 120) -> dict[str, Any]:
        """Wait for its end; the summary it wrote. The seconds that are kept of it must sum to its account."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.close()
            raise AssertionError(
                f"still running after {timeout_s} s: {self.output}\n{self.read_logs()}"
            ) from None
        assert self._json_file.exists(), (
            f"exit code {self.process.returncode}: {self.output}\n{self.read_logs()}"
        )
        summary: dict[str, Any] = json.loads(self._json_file.read_text())
        assert sum_series(self.data_dir / "ledger.sqlite3", summary["run"]) == summary["outcomes"]
        return summary

    def read_logs(self, lines: int = 15) -> str:
        """The last lines that each process of the stack has logged."""
        logs = sorted((self.data_dir / "logs").glob("*.log"))
        return "\n".join(
            f"== {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
            for log in logs
        )

    def close(self) -> None:
        """End what is left of it."""
        children = list(self.children().values())
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        wait_until(lambda: not any(map(is_alive, children)), 15, "the children have died with their parent")
        self._output.close()

    def _has_run(self) -> bool:
        try:
            return bool(self.run_id())
        except (UserError, IndexError):
            return False  # there is no ledger, or no run in it

    def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        def is_met() -> bool:
            assert self.process.poll() is None, f"ended before {what}: {self.output}\n{self.read_logs()}"
            return condition()

        wait_until(is_met, timeout_s, what)
