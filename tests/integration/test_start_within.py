"""Runs begin when all of their workers are there; one that lacks some begins with the others, and says so."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.kit.runs.local_run import LocalRun, starting_runs, wait_until

FLAGS = ("--delay", "5ms", "--concurrency", "20")


def freeze(run: LocalRun, worker: str) -> None:
    """Stop a worker before it has loaded what it needs to speak."""
    wait_until(lambda: worker in run.children(), 20, f"{worker} was started")
    os.kill(run.pid(worker), signal.SIGSTOP)


def show_flags(summary: dict[str, Any]) -> dict[str, str]:
    """The flags of a summary with what they say."""
    return {validity["flag"]: validity["detail"] for validity in summary["validity"]}


def test_a_run_begins_when_the_last_worker_is_there(tmp_path: Path) -> None:
    """One that comes late takes part all the same, and the run says nothing of it."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "6000", "-w", "3", "--start-within", "60s", *FLAGS)
        freeze(run, "worker-3")
        time.sleep(3)
        assert run.lengths().accounted == run.lengths().leased == 0
        run.kill("worker-3", signal.SIGCONT)
        summary = run.finish()
    assert {worker["name"] for worker in summary["workers"]} == {"worker-1", "worker-2", "worker-3"}
    assert "workers_missing" not in show_flags(summary)


def test_a_run_begins_without_a_worker_that_does_not_come(tmp_path: Path) -> None:
    """It waits as long as it was told to; then screen, history and summary name the one that is missing."""
    with starting_runs(tmp_path) as start:
        run = start("run", "-n", "2000", "-w", "3", "--start-within", "2s", *FLAGS)
        freeze(run, "worker-3")
        summary = run.finish()
        assert "worker-3 is missing" in run.output
    assert (summary["state"], summary["accounted"]) == ("completed", 2000)
    assert {worker["name"] for worker in summary["workers"]} == {"worker-1", "worker-2"}
    assert show_flags(summary)["workers_missing"].startswith("1 worker was missing when the run began")
    page = tmp_path / "data" / "reports" / f"{summary['run']}.html"
    assert "the run starts with 2 of 3 workers: worker-3 is missing" in page.read_text()
