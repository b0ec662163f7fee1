"""Runs with a rate whose every second has what is due in it, whatever happens to what plans it.

Those of both engines go beside each other.
"""

import math
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.kit.runs.account import assert_completed, list_flags
from tests.kit.runs.local_run import LocalRun, Start, run_oku
from tests.kit.runs.planned_seconds import Second, assert_as_planned, list_seconds
from tests.kit.runs.standing_stack import StandingStack, run_standing_stack

from oku_cli.exit_code import ExitCode
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import read_leases
from oku_core.spec.spec import HTTP1_ENGINES

pytestmark = pytest.mark.alone

STACK = ("--servers", "1", "--delay", "5ms", "--quiet")
AWAY_S, START_S = 8.0, 2.5
"""How long the coordinator is away, and what of that it takes to start."""
STALL_S = 0.5
"""So late may workers be on a small machine while a coordinator starts."""
DEALT_S = 8.0
"""At least so much of the schedule is dealt at any time."""

LOADS = {
    "even": ("--rate", "40/s", "--duration", "5s"),
    "ramp": ("--stage", "3s:0..33.3/s", "--stage", "2500ms:40.7..12/s"),
    "poisson": ("--rate", "40/s", "--duration", "5s", "--arrivals", "poisson", "--seed", "7"),
}
CASES = [("even", 1), ("ramp", 1), ("ramp", 3), ("poisson", 3)]
"""Loads and numbers of workers."""
KEPT = ("--threshold", "rate >= 0.99 of plan over 2s: abort", "--threshold", "rate >= 0.97 of plan over 1s")


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[StandingStack]]:
    """One for each engine, with three workers."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(run_standing_stack(tmp_path_factory.mktemp(engine), 3))
            for engine in HTTP1_ENGINES
        ]


def start_each(start: Start, *flags: str) -> list[LocalRun]:
    """Start a run with each engine."""
    return [start("run", *flags, *STACK, "--engine", engine, data_dir=engine) for engine in HTTP1_ENGINES]


def find_ledger(run: LocalRun) -> Path:
    """That of a local stack."""
    return run.data_dir / "ledger.sqlite3"


def assert_all_sent(summary: dict[str, Any]) -> None:
    """Each request was sent, once, and no second missed the plan."""
    assert_completed(summary)
    assert summary["outcomes"]["ok"] == summary["requests"]
    assert summary["resent_at_most"] == 0


def check_seconds(ledger: Path, summary: dict[str, Any]) -> list[Second]:
    """Check each second, and that the summary tells the same of them."""
    seconds = assert_as_planned(ledger, summary["run"])
    off = sum(abs(second.sent - second.due) > 1 for second in seconds)
    assert (summary["plan"]["seconds"], summary["plan"]["off_seconds"]) == (len(seconds), off)
    assert ("off_plan" in list_flags(summary)) == (off > 0)
    return seconds


@pytest.mark.parametrize(("load", "workers"), CASES)
def test_every_second_has_what_is_due_in_it(stacks: list[StandingStack], load: str, workers: int) -> None:
    """To one request, as the schedule has it: the due times do not depend on who sends."""
    flags = (*LOADS[load], *KEPT, "--delay", "5ms", "--workers", str(workers))
    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(stack.run, *flags, "--engine", engine)
            for stack, engine in zip(stacks, HTTP1_ENGINES, strict=True)
        ]
    for stack, run in zip(stacks, runs, strict=True):
        summary = run.result()
        assert_all_sent(summary)
        assert len(check_seconds(stack.ledger, summary)) == 5
        assert len([worker for worker in summary["workers"] if worker["requests"]]) == workers
        assert summary["verdict"] == "passed", summary["thresholds"]


def pause(run: LocalRun) -> None:
    """Pause a run as from another terminal, and wait for its command."""
    paused = run_oku("pause", run.run_id(), "--data-dir", str(run.data_dir), cwd=run.data_dir)
    assert paused.returncode == 0, paused.stderr
    summary = run.finish()
    assert run.process.returncode == ExitCode.CUT_SHORT
    assert (summary["state"], summary["verdict"]) == ("paused", None)


def test_a_run_goes_on_where_it_was_paused(start: Start) -> None:
    """A pause names a time half a second ahead, so no worker is late for it; nor is one for the resume.

    Seconds before and behind a pause are not in a row; before it nothing is decided.
    """
    kept = ("--threshold", "rate >= 0.95 of plan over 3s: abort", "--threshold", "ok >= 99% over 2s: abort")
    runs = start_each(start, "--rate", "40/s", "--duration", "9s", "--workers", "2", *kept)
    for run in runs:
        run.wait_for_accounted(60)
        pause(run)
    for resumed in [start("resume", run.run_id(), "--quiet", data_dir=run.data_dir.name) for run in runs]:
        summary = resumed.finish()
        assert_all_sent(summary)
        assert summary["verdict"] == "passed", summary["thresholds"]
        assert len(check_seconds(find_ledger(resumed), summary)) >= 7
        assert summary["lateness_ms"]["max"] < 500


def test_a_coordinator_that_is_away_for_eight_seconds_leaves_no_gap(start: Start) -> None:
    """The workers have about ten seconds of the schedule, and the new coordinator goes on with the rest.

    Where a new one takes seconds to start, it is away for longer: then what was dealt is sent all the same.
    """
    killed = []
    for run in start_each(start, "--rate", "40/s", "--duration", "22s", "--workers", "2"):
        run.wait_for_accounted(80)
        run.process.send_signal(signal.SIGSTOP)  # else the command starts another one at once
        killed.append((run, run.kill("coordinator"), time.time()))
    time.sleep(AWAY_S - START_S)
    for run, pid, _ in killed:
        run.process.send_signal(signal.SIGCONT)
        run.wait_for_restart("coordinator", pid)
    for run, _, killed_at in killed:
        summary = run.finish()
        back_at = min((cut_at for cut_at in list_cuts(run) if cut_at > killed_at), default=killed_at)
        gap = range(math.floor(killed_at + DEALT_S), math.ceil(back_at + 2))
        assert_completed(summary)
        assert sum(summary["not_sent"].values()) == summary["not_sent"]["not_dealt"] <= 40 * len(gap)
        assert summary["resent_at_most"] == 0
        seconds = list_seconds(find_ledger(run), summary["run"], slack_s=STALL_S)
        assert len(seconds) == 22
        assert not [second for second in seconds if not second.is_as_planned and second.at not in gap]


def list_cuts(run: LocalRun) -> list[float]:
    """When the leases of a run were dealt."""
    ledger = Ledger(find_ledger(run), read_only=True)
    try:
        return [lease.cut_at for page in read_leases(ledger, run.run_id()) for lease in page]
    finally:
        ledger.close()
