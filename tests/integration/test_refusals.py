"""Runs that workers cannot begin with, or die of: beside others that can, and alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until
from tests.kit.servers.certificates import Certificates
from tests.kit.servers.delay_server import Start
from tests.kit.workers.simulated_worker import SimulatedWorker
from tests.kit.workers.worker_process import run_worker

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
        run_worker(broker_url, "--files-dir", str(tmp_path / "data"), name="bad"),
        run_worker(broker_url, *flags, name="good"),
    ):
        wait_until(lambda: api.read_metric("oku_workers") == 2, 30, "both workers are connected")
        run = submit(api, target, certificates)
        wait_for_notice(api, run, "worker bad gets no leases of this run: cacert")
        summary = api.wait_for_state(run, "completed", 60)
    assert_completed(summary)
    assert [worker["name"] for worker in summary["workers"] if worker["requests"]] == ["good"]


def test_a_run_that_no_worker_can_begin_fails_and_can_be_resumed(
    tmp_path: Path, certificates: Certificates, target: str
) -> None:
    """It can be resumed by a worker that can begin it."""
    flags = ["--files-dir", str(certificates.folder)]
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data", *flags) as api:
        with run_worker(broker_url, "--files-dir", str(tmp_path / "data"), name="bad"):
            run = submit(api, target, certificates)
            summary = api.wait_for_state(run, "failed", 30)
        assert summary["reason"].startswith("worker bad: cacert")
        assert summary["accounted"] == 0
        with run_worker(broker_url, *flags, name="good"):
            status, _ = api.call("POST", f"/api/runs/{run}/resume")
            assert status == 202
            assert_completed(api.wait_for_state(run, "completed", 60))


def test_a_run_that_kills_worker_after_worker_fails_with_that_reason(tmp_path: Path) -> None:
    """Each worker comes back as a new process, takes a lease and dies; then the next run has its turn."""
    flags = ["--worker-timeout", "1s"]
    with run_broker(tmp_path) as broker_url, run_coordinator(broker_url, tmp_path / "data", *flags) as api:
        run = api.submit(requests=1000, url="http://127.0.0.1:9/", **{"range-size": "100"})
        for _ in range(5):
            with SimulatedWorker(broker_url) as worker:
                worker.take_lease(20)
        with SimulatedWorker(broker_url):
            summary = api.wait_for_state(run, "failed", 20)
    assert summary["reason"].startswith("5 workers in a row died with its leases")
    assert summary["accounted"] == 0
