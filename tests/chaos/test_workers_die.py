"""Workers that are killed, stopped, joined and taken away, while a run goes on."""

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.kit.account import assert_completed, list_flags
from tests.kit.local_run import OKU, Start, wait_until

SMALL_LEASES = ("--range-size", "2000")
"""About a second of a worker, not ten: what is lost with one is soon made up for."""


def test_a_worker_is_killed(start_load: Start) -> None:
    """The leases of a killed worker are taken up by others; the run completes and says so."""
    run = start_load(30_000)
    run.wait_for_accounted(5_000)
    run.kill("worker-1")

    summary = run.finish()

    assert run.process.returncode == 0
    assert_completed(summary)
    assert summary["resent_at_most"] > 0
    assert {worker["name"]: worker["lost"] for worker in summary["workers"]} == {
        "worker-1": True,
        "worker-2": False,
    }
    assert {"worker_lost", "resent"} <= list_flags(summary)


def test_every_worker_is_killed_in_turn(start_load: Start) -> None:
    """Each worker of a run may die, one after the other."""
    run = start_load(30_000, *SMALL_LEASES)
    for name in ("worker-1", "worker-2", "worker-1", "worker-2"):
        run.wait_for_accounted(run.lengths().accounted + 2_000)
        old_pid = run.kill(name)
        run.wait_for_restart(name, old_pid)

    summary = run.finish()

    assert_completed(summary)
    assert all(worker["lost"] for worker in summary["workers"])


def test_all_workers_are_killed_at_once(start_load: Start) -> None:
    """With every worker dead, nothing is lost but the work that was under way."""
    run = start_load(25_000, *SMALL_LEASES)
    run.wait_for_accounted(5_000)
    for name in ("worker-1", "worker-2"):
        run.kill(name)

    summary = run.finish()

    assert_completed(summary)
    assert 0 < summary["resent_at_most"] <= 4 * 2000  # each had two leases at most


def test_a_worker_is_stopped_and_continued(start_load: Start) -> None:
    """One that is silent for two terms is declared dead; what it reports when it continues does not count."""
    run = start_load(55_000, *SMALL_LEASES)
    run.wait_for_accounted(5_000)
    pid = run.kill("worker-1", signal.SIGSTOP)
    time.sleep(15)
    os.kill(pid, signal.SIGCONT)

    summary = run.finish()

    assert_completed(summary)
    assert run.children() == {}
    assert {worker["name"]: worker["lost"] for worker in summary["workers"]}["worker-1"]
    assert summary["resent_at_most"] > 0


def test_workers_join_and_leave(start_load: Start, tmp_path: Path) -> None:
    """Workers may come at any time, and one that leaves orderly sends nothing twice."""
    run = start_load(60_000, *SMALL_LEASES)
    run.wait_for_accounted(5_000)
    broker_url = f"redis+socket://{run.data_dir}/broker/valkey.sock"
    with (tmp_path / "guests.log").open("w") as log:
        guests = [
            subprocess.Popen([*OKU, "worker", "--broker-url", broker_url, "--name", f"guest-{n}"], stderr=log)
            for n in (1, 2)
        ]
        wait_until(lambda: {"guest-1", "guest-2"} <= run.worker_names(), 30, "both guests have reported")
        for guest in guests:
            guest.terminate()
        assert [guest.wait(20) for guest in guests] == [0, 0]
        left_at = run.lengths().accounted

        summary = run.finish()

    assert_completed(summary)
    assert left_at < summary["requests"]
    assert {worker["name"] for worker in summary["workers"]} == {"worker-1", "worker-2", "guest-1", "guest-2"}
    assert summary["resent_at_most"] == 0
    assert summary["servers"]["served"] == summary["requests"]
