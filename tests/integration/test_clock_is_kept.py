"""A coordinator that is killed in the middle of a run leaves its clock to the next one."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.worker_process import run_worker

AWAY_NS = 1_000_000_000_000
"""By so much the clock of the run is not that of this machine."""
TRANSIT_NS = 1_000_000_000
"""What a worker says takes its time; a busy machine makes it long."""


class Installation:
    """A run under way, and the clock that is kept beside its ledger."""

    def __init__(self, broker_url: str, folder: Path, target: str) -> None:
        self.broker_url = broker_url
        self.folder = folder / "data"
        with self.start() as api:
            self.run = api.submit(requests=100, url=target, concurrency=1, timeout="600s")
            api.wait_for_state(self.run, "running")

    @contextmanager
    def start(self) -> Iterator[CoordinatorApi]:
        """A coordinator, until the end of the block."""
        with run_coordinator(self.broker_url, self.folder) as api:
            yield api

    def read(self) -> dict[str, str | int]:
        """What is kept."""
        kept: dict[str, str | int] = json.loads((self.folder / "clock.json").read_text())
        return kept

    def change(self, **changes: str | int) -> None:
        """Keep something else."""
        (self.folder / "clock.json").write_text(json.dumps(self.read() | changes))


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """One with a worker that waits for a target that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with run_broker(tmp_path) as broker_url, run_worker(broker_url):
            yield Installation(broker_url, tmp_path, target)


def test_the_clock_of_a_run_goes_on_after_a_restart_and_on_another_machine(
    installation: Installation,
) -> None:
    """On the same machine it is kept to the nanosecond; on another one, workers know what it was."""
    kept_ns = int(installation.read()["offset_ns"])
    with installation.start():
        assert installation.read()["offset_ns"] == kept_ns
    run_ns = kept_ns - AWAY_NS
    installation.change(offset_ns=run_ns)
    with installation.start() as api:
        assert installation.read()["offset_ns"] == run_ns
        wait_until(lambda: api.read_metric("oku_workers") == 1, 20, "the worker is heard")
        wait_until(lambda: api.read_metric("oku_progress_total") > 2, 20, "it has heard of the clock")
    installation.change(kernel="that of a machine that is gone", offset_ns=0)
    with installation.start():
        wait_until(lambda: installation.read()["offset_ns"] != 0, 20, "the clock is found")
        assert run_ns - TRANSIT_NS < int(installation.read()["offset_ns"]) <= run_ns
