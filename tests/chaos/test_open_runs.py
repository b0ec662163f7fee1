"""Runs at a rate, whose processes die and are stopped: the schedule goes on, and all of it is accounted."""

import os
import signal
import time
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start, run_oku

pytestmark = pytest.mark.alone

RATE = 200
SECONDS = 16
OPEN = (
    "--rate", f"{RATE}/s", "--duration", f"{SECONDS}s",
    "--workers", "2", "--servers", "1", "--delay", "5ms", "--quiet",
)  # fmt: skip
AWAY_S = 8.0


def count_others(summary: dict[str, Any]) -> dict[str, int]:
    """The outcomes that are neither zero nor `ok`."""
    return {name: count for name, count in summary["outcomes"].items() if count and name != "ok"}


def test_the_coordinator_is_stopped_for_eight_seconds(start: Start) -> None:
    """The workers have ten seconds of the schedule, so there is no gap."""
    run = start("run", *OPEN)
    run.wait_for_accounted(5 * RATE)
    pid = run.kill("coordinator", signal.SIGSTOP)
    time.sleep(AWAY_S)
    os.kill(pid, signal.SIGCONT)
    summary = run.finish()

    assert_completed(summary)
    assert count_others(summary) == {}
    assert summary["resent_at_most"] == 0


def test_the_coordinator_is_killed_three_times(start: Start) -> None:
    """It goes on with the clock and the waves that the ledger has."""
    run = start("run", *OPEN)
    run.wait_for_accounted(RATE)
    for _ in range(3):
        accounted = run.lengths().accounted
        old_pid = run.kill("coordinator")
        run.wait_for_restart("coordinator", old_pid)
        run.wait_for_accounted(min(accounted + 1, RATE * SECONDS))  # it goes on, however long its start took
        time.sleep(1.5)
    summary = run.finish()

    assert_completed(summary)
    assert count_others(summary) == {}
    assert summary["active_s"] < SECONDS + 2


def test_a_run_is_paused_and_resumed(start: Start) -> None:
    """Nothing is late for it, and nothing is lost."""
    run = start("run", *OPEN)
    run.wait_for_accounted(4 * RATE)
    where = ("--data-dir", str(run.data_dir))
    paused = run_oku("pause", run.run_id(), *where, cwd=run.data_dir)
    assert paused.returncode == 0, paused.stderr
    run.process.wait(30)
    summary = start("resume", run.run_id(), "--quiet").finish()

    assert_completed(summary)
    assert count_others(summary) == {}
    assert summary["resent_at_most"] == 0
    assert SECONDS - 1 < summary["active_s"] < SECONDS + 3


def test_a_stack_is_killed_and_the_run_resumed(start: Start) -> None:
    """It goes on where the last checkpoint was; what was sent since is sent again, at its time."""
    run = start("run", *OPEN)
    run.wait_for_accounted(4 * RATE)
    run.process.kill()
    run.close()
    summary = start("resume", run.run_id(), "--quiet").finish()

    assert_completed(summary)
    assert count_others(summary) == {}
    assert summary["resent_at_most"] > 0
