"""Runs that workers cannot begin with, or die of: beside others that can, and alone."""

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import OKU, wait_until
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.delay_server import Start
from tests.kit.workers.simulated_worker import SimulatedWorker

_REQUESTS = 200


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """In a folder that not every worker may read."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    """Answers after 50 ms."""
    start = Start(tmp_path)
    yield f"{start('--delay', '50ms').url}/{{i}}"
    start.end()


@contextmanager
def run_worker(broker_url: str, name: str, files_dir: Path) -> Iterator[None]:
    """Runs `oku worker` until the end of the block."""
    command = [*OKU, "worker", "--broker-url", broker_url, "--name", name, "--files-dir", str(files_dir)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.terminate()


def fetch_metrics(api: CoordinatorApi) -> str:
    """What the coordinator shows to Prometheus."""
    with urllib.request.urlopen(f"{api.url}/metrics", timeout=5) as response:
        return str(response.read().decode())


def submit(api: CoordinatorApi, target: str, certificates: Certificates) -> str:
    """A run of some seconds whose spec names a file; its id."""
    spec = {"requests": _REQUESTS, "url": target, "concurrency": 10, "range-size": "20"}
    return api.submit(**spec, cacert=str(certificates.cacert))


def wait_for_notice(api: CoordinatorApi, run: str, text: str) -> None:
    """Wait until a notice of the run says this."""
    wait_until(lambda: any(text in notice for notice in api.summary(run)["notices"]), 20, text)


def test_a_worker_that_cannot_begin_ends_no_run(
    tmp_path: Path, certificates: Certificates, target: str
) -> None:
    """The other worker does all of it, and the notices name the worker that cannot begin and the reason."""
    flags = ["--files-dir", str(certificates.folder)]
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", *flags) as api,
        run_worker(broker_url, "bad", tmp_path / "data"),
        run_worker(broker_url, "good", certificates.folder),
    ):
        wait_until(lambda: "oku_workers 2.0" in fetch_metrics(api), 30, "both workers are connected")
        run = submit(api, target, certificates)
        wait_for_notice(api, run, "worker bad gets none of it: cacert")
        summary = api.wait_for_state(run, "completed", 60)
    assert_completed(summary)
    assert [worker["name"] for worker in summary["workers"] if worker["requests"]] == ["good"]


def test_a_run_that_no_worker_can_begin_fails_and_can_be_resumed(
    tmp_path: Path, certificates: Certificates, target: str
) -> None:
    """It can be resumed by a worker that can begin it."""
    flags = ["--files-dir", str(certificates.folder)]
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data", *flags) as api:
        with run_worker(broker_url, "bad", tmp_path / "data"):
            run = submit(api, target, certificates)
            summary = api.wait_for_state(run, "failed", 30)
        assert summary["reason"].startswith("worker bad: cacert")
        assert summary["accounted"] == 0
        with run_worker(broker_url, "good", certificates.folder):
            status, _ = api.call("POST", f"/api/runs/{run}/resume")
            assert status == 202
            assert_completed(api.wait_for_state(run, "completed", 60))


def test_a_run_that_kills_worker_after_worker_fails_with_that_reason(tmp_path: Path) -> None:
    """Each worker comes back as a new process, takes a lease and dies; then the next run has its turn."""
    flags = ["--worker-timeout", "1s"]
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data", *flags) as api:
        run = api.submit(requests=1000, url="http://127.0.0.1:9/", **{"range-size": "100"})
        for death in range(5):
            with SimulatedWorker(broker_url) as worker:
                lease = worker.take_lease(20)
                worker.send(worker.build_claim(lease, f"e{death}"))
                claimed = f'oku_messages_total{{verdict="claimed"}} {death + 1}.0'
                wait_until(lambda claimed=claimed: claimed in fetch_metrics(api), 10, "it is claimed")  # type: ignore[misc]
        with SimulatedWorker(broker_url):
            summary = api.wait_for_state(run, "failed", 20)
    assert summary["reason"].startswith("5 workers in a row have died with its leases")
    assert summary["accounted"] == 0
