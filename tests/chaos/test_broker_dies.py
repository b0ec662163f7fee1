"""The broker is killed, and comes back with its data or without."""

import os
import shutil
import signal

import pytest
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import Start, is_alive, wait_until

from oku_core.spec.spec import Engine


@pytest.mark.parametrize("engine", [Engine.HTTPTOOLS])
def test_the_broker_is_killed_and_restarted_with_its_data(start_load: Start) -> None:
    """Four deaths of the broker cost no request and no worker."""
    run = start_load(22_500)
    for _ in range(4):
        run.wait_for_accounted(run.lengths().accounted + 2_500)
        old_pid = run.kill("broker")
        run.wait_for_restart("broker", old_pid)

    summary = run.finish()

    assert_completed(summary)
    # Workers execute the leases that they have without it.
    assert "died (exit code" not in run.output
    assert not any(worker["lost"] for worker in summary["workers"])


@pytest.mark.parametrize("engine", [Engine.AIOHTTP])
def test_the_broker_is_killed_and_restarted_empty(start_load: Start) -> None:
    """Messages are hints: when all of them are lost, what they stood for is sent again."""
    run = start_load(18_000, "--range-size", "1000")
    run.wait_for_accounted(5_000)
    # While its supervisor sleeps, nobody starts the broker again before its data is gone.
    os.kill(run.process.pid, signal.SIGSTOP)
    old_pid = run.kill("broker")
    wait_until(lambda: not is_alive(old_pid), 5, "the broker is dead")
    shutil.rmtree(run.data_dir / "broker" / "appendonlydir")
    os.kill(run.process.pid, signal.SIGCONT)
    run.wait_for_restart("broker", old_pid)

    summary = run.finish()

    assert_completed(summary)
