"""Workers that are killed, stopped, joined and taken away, while runs go on: one run with each engine."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.both_transports import on_both_transports
from tests.kit.runs.local_run import LocalRun, wait_until
from tests.kit.runs.steady_load import WINDOW
from tests.kit.workers.guest_worker import build_guest

from oku_core.spec.spec import Engine

StartBoth = Callable[..., dict[Engine, LocalRun]]
WORKERS = ("worker-1", "worker-2")
GUESTS = ("guest-1", "guest-2")
SMALL_LEASES = ("--range-size", "1000")
"""About a second of a worker, not ten, so that there are many."""


@on_both_transports
def test_every_worker_is_killed_in_turn_and_then_all_at_once(
    start_both: StartBoth, subtests: pytest.Subtests
) -> None:
    """Each worker of a run may die, and all of them at once: only the work in progress is lost."""
    runs = start_both(20_000, *SMALL_LEASES)
    for victims in (*((name,) for name in WORKERS * 2), WORKERS):
        before = {engine: run.lengths().accounted for engine, run in runs.items()}
        for engine, run in runs.items():
            run.wait_for_accounted(before[engine] + 1_000)
            old_pids = {name: run.kill(name) for name in victims}
            for name, old_pid in old_pids.items():
                run.wait_for_restart(name, old_pid)

    for engine, run in runs.items():
        with subtests.test(engine=engine):
            summary = run.finish()

            assert_completed(summary)
            assert all(worker["lost"] for worker in summary["workers"])
            # Six deaths, each of which costs at most a window and 12 s of work.
            most = 6 * (WINDOW + 12 * summary["throughput_rps"])
            assert 0 < summary["resent_at_most"] <= most


@on_both_transports
def test_a_worker_is_stopped_and_continued(start_both: StartBoth, subtests: pytest.Subtests) -> None:
    """A stopped worker is declared dead; what it says after it continues does not count."""
    runs = start_both(25_000, *SMALL_LEASES)
    stopped = []
    for run in runs.values():
        run.wait_for_accounted(2_500)
        stopped.append((run, run.kill("worker-1", signal.SIGSTOP)))
    for run, pid in stopped:
        wait_until(lambda run=run: is_dead(run, "worker-1"), 60, "it is taken for dead")  # type: ignore[misc]
        os.kill(pid, signal.SIGCONT)

    for engine, run in runs.items():
        with subtests.test(engine=engine):
            summary = run.finish()

            assert_completed(summary)
            assert run.children() == {}
            assert {worker["name"]: worker["lost"] for worker in summary["workers"]}["worker-1"]
            assert summary["resent_at_most"] > 0


def is_dead(run: LocalRun, worker: str) -> bool:
    """Whether the coordinator has said so."""
    return f"worker {worker} is dead" in (run.data_dir / "logs" / "coordinator.log").read_text()


@pytest.mark.parametrize("has_broker", [True], indirect=True)
def test_workers_join_and_leave(start_both: StartBoth, subtests: pytest.Subtests, tmp_path: Path) -> None:
    """Workers may join at any time, and one that leaves in order sends nothing twice."""
    runs = start_both(100_000, *SMALL_LEASES)
    guests, left_at = {}, {}
    with ExitStack() as logs:
        for engine, run in runs.items():
            run.wait_for_leases()
            log = logs.enter_context((tmp_path / f"{engine}-guests.log").open("w"))
            guests[engine] = [subprocess.Popen(build_guest(run, name), stderr=log) for name in GUESTS]
        for engine, run in runs.items():
            wait_until(lambda run=run: set(GUESTS) <= run.worker_names(), 60, "both guests have reported")  # type: ignore[misc]
            for guest in guests[engine]:
                guest.terminate()
            assert [guest.wait(20) for guest in guests[engine]] == [0, 0]
            left_at[engine] = run.lengths().accounted

    for engine, run in runs.items():
        with subtests.test(engine=engine):
            summary = run.finish()

            assert_completed(summary)
            assert left_at[engine] < summary["requests"]
            assert {worker["name"] for worker in summary["workers"]} == {*WORKERS, *GUESTS}
            assert summary["resent_at_most"] == 0
            assert summary["servers"]["served"] == summary["requests"]
