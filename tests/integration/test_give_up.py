"""`give-up-after` at a real coordinator: runs that have no worker are cancelled there, whoever watches."""

import os
import subprocess
import time
from pathlib import Path

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN, run_coordinator
from tests.kit.runs.local_run import OKU
from tests.kit.workers.simulated_worker import SimulatedWorker

from oku_cli.exit_code import ExitCode

_FAR = "http://127.0.0.1:9/"
_HINT = "; --give-up-after sets the limit"


def test_a_run_without_a_worker_is_given_up(tmp_path: Path) -> None:
    """One that is queued behind another ends first, and the other once its worker has been gone as long.

    A third, which allows for more, begins with the worker that comes in time.
    """
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--worker-timeout", "1s") as api,
    ):
        with SimulatedWorker(broker_url) as worker:
            active = api.submit(requests=10, url=_FAR, **{"give-up-after": "6s"})
            worker.take_lease()
            patient = api.submit(requests=10, url=_FAR, **{"give-up-after": "10m"})
            flags = ("--coordinator", api.url, "--give-up-after", "2s", "--threshold", "p99 < 1s")
            began = time.monotonic()
            queued = subprocess.run(
                [*OKU, "run", _FAR, "-n", "10", "--quiet", *flags],
                env=os.environ | {"OKU_TOKEN": TOKEN}, capture_output=True, text=True, timeout=60,
                check=False,
            )  # fmt: skip
            assert time.monotonic() - began >= 2
            assert queued.returncode == ExitCode.CUT_SHORT, queued
            reason = f"no worker for 2 s: waiting for its turn: run {active} is running{_HINT}"
            assert reason in " ".join(queued.stdout.split())
            assert api.summary(active)["state"] == "running"
        summary = api.wait_for_state(active, "cancelled")
        assert summary["reason"] == f"no worker for 6 s: waiting for a worker to connect{_HINT}"
        with SimulatedWorker(broker_url, "other") as worker:
            worker.execute(worker.take_lease())
            assert api.wait_for_state(patient, "completed")["accounted"] == 10
