"""The queue of runs at a real coordinator: who waits is told why, and nobody blocks it for ever."""

from pathlib import Path

from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.simulated_worker import SimulatedWorker

_SPEC = {"requests": 10, "url": "http://127.0.0.1:9/"}


def test_a_run_that_cannot_begin_gives_its_turn_to_the_next(tmp_path: Path) -> None:
    """Both runs say what they wait for; the one whose turn it is begins as soon as a worker connects."""
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--start-within", "3s") as api,
    ):
        first, second = (api.submit(**_SPEC) for _ in range(2))
        wait_until(
            lambda: fetch_notices(api, second)
            == [f"waiting for its turn: run {first} is pending: waiting for a worker to connect"],
            3, "the second says why it waits",
        )  # fmt: skip
        assert fetch_notices(api, first) == ["waiting for a worker to connect"]
        wait_until(
            lambda: fetch_notices(api, second) == ["waiting for a worker to connect"],
            20, "the second has its turn",
        )  # fmt: skip
        with SimulatedWorker(broker_url) as worker:
            lease = worker.take_lease(20)
            worker.execute(lease)
            assert {lease.run, worker.take_lease(20).run} == {first, second}


def test_the_queue_is_bounded(tmp_path: Path) -> None:
    """One more run is refused in one line until one of those in the queue is over."""
    with (
        run_broker(tmp_path) as broker_url,
        run_coordinator(broker_url, tmp_path / "data", "--max-queued-runs", "3") as api,
    ):
        runs = [api.submit(**_SPEC) for _ in range(3)]
        status, answer = api.call("POST", "/api/runs", _SPEC)
        assert (status, answer["error"]) == (
            429,
            "3 runs are pending or active, and at most 3 may be: wait for one to end, or cancel one",
        )
        assert api.call("POST", f"/api/runs/{runs[0]}/pause")[0] == 202
        fourth = api.submit(**_SPEC)
        assert api.call("POST", f"/api/runs/{runs[0]}/resume")[0] == 429
        assert api.call("POST", f"/api/runs/{fourth}/cancel")[0] == 202
        assert api.call("POST", f"/api/runs/{runs[0]}/resume")[0] == 202


def fetch_notices(api: CoordinatorApi, run: str) -> list[str]:
    """What a run waits for."""
    notices: list[str] = api.summary(run)["notices"]
    return notices
