"""Messages over the real broker that are doubled, reordered, lost, late or forged; the account holds."""

import time
from collections.abc import Iterator

import msgspec
import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.account import assert_account_balances, assert_completed
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.simulated_worker import SimulatedWorker

from oku_core.accounting.histogram import HistogramSnapshot

SPEC = {"requests": 300, "range-size": 100, "url": "http://127.0.0.1:9/{i}"}
"""Three leases; nobody sends a request."""


@pytest.fixture(scope="module")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real broker for all tests of the module: each of them has a run of its own, and ends it."""
    with run_broker(tmp_path_factory.mktemp("broker")) as url:
        yield url


@pytest.fixture(scope="module")
def api(broker_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorApi]:
    """A real coordinator, which takes a worker for dead after two seconds."""
    folder = tmp_path_factory.mktemp("coordinator")
    with run_coordinator(broker_url, folder / "data", "--worker-timeout", "2s") as coordinator:
        yield coordinator


@pytest.fixture
def worker(broker_url: str, api: CoordinatorApi) -> Iterator[SimulatedWorker]:
    """A worker that says what the test wants."""
    with SimulatedWorker(broker_url) as simulated:
        yield simulated


def test_a_doubled_report_counts_once(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """The same report twice accounts for its requests once, and nothing is taken as sent again."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    report = worker.build_report(lease, "e1")
    worker.send(worker.build_claim(lease, "e1"), report, report, report)
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0


def test_a_report_may_overtake_its_claim(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """A report that comes before its claim counts, and the claim after it changes nothing."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    worker.send(worker.build_report(lease, "e1"), worker.build_claim(lease, "e1"))
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0


def test_a_lease_executed_twice_counts_once(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """When a doubled message made two workers begin, the second one's requests are taken as sent again."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    worker.send(
        worker.build_claim(lease, "e1"),
        worker.build_claim(lease, "e2"),
        worker.build_report(lease, "e2"),
        worker.build_report(lease, "e1"),
    )
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 100


def test_a_lost_lease_is_granted_again(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """A lease whose message nobody acts on is reclaimed after the worker timeout."""
    run = api.submit(**SPEC)
    lost = worker.take_lease()
    worker.leases.discard(lost.id)
    worker.execute_next(3)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 100


def test_requests_of_a_lost_report_are_granted_again(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """The lease that a living worker no longer has, and whose report never came, is reclaimed."""
    run = api.submit(**SPEC)
    lost = worker.take_lease()
    worker.send(worker.build_claim(lost, "e1"))
    worker.leases.discard(lost.id)
    worker.execute_next(3)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 100


def test_a_late_report_does_not_count(api: CoordinatorApi, worker: SimulatedWorker, broker_url: str) -> None:
    """A worker that was declared dead may still report; its lease has been granted to another."""
    run = api.submit(**SPEC)
    with SimulatedWorker(broker_url, "mortal") as mortal:
        lease = mortal.take_lease()
        mortal.send(mortal.build_claim(lease, "late"))
    worker.execute_next(3)
    summary = api.wait_for_state(run, "completed")
    mortal.send(mortal.build_report(lease, "late"))
    time.sleep(1)

    assert api.summary(run)["outcomes"] == summary["outcomes"]
    assert_completed(api.summary(run))
    assert api.summary(run)["resent_at_most"] == 100
    assert {w["name"]: w["lost"] for w in summary["workers"]} == {"simulated": False, "mortal": True}


def test_forged_messages_change_nothing(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """Messages that cannot be true, or cannot be decoded, are dropped; the run goes on."""
    run = api.submit(**SPEC)
    untrue, unknown = api.count_messages("untrue"), api.count_messages("unknown")
    lease = worker.take_lease()
    forged = worker.build_report(lease, "e1")
    worker.send(
        worker.build_claim(lease, "e1"),
        msgspec.structs.replace(forged, lease=f"{run}.1.00000000"),
        worker.build_report(lease, "e1", done=lease.stop + 1),
        worker.build_report(lease, "e1", start=lease.start + 1),
        worker.build_report(lease, "e1", outcomes=[101, 0, 0, 0, 0, 0]),
        worker.build_report(lease, "e1", outcomes=[101, -1, 0, 0, 0, 0]),
        worker.build_report(lease, "e1", statuses={"200": 7}),
        worker.build_report(lease, "e1", unfinished=[lease.start, lease.start]),
        worker.build_report(lease, "e1", bytes_received=-1),
    )
    worker.send_anything({"type": "report"})
    worker.send_anything("nonsense")
    worker.send_raw(b"{", "application/json")
    worker.send_raw(b"\x80\x04N.", "application/x-python-serialize")
    worker.send_raw(b'"text"', "application/json")
    wait_until(lambda: api.count_messages("untrue") == untrue + 7, 10, "seven reports are found untrue")
    assert api.summary(run)["accounted"] == 0
    worker.send(forged)
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert api.count_messages("unknown") == unknown + 1


def test_a_partial_report_gives_the_rest_back(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """A report may cover a part; the rest and what was unfinished are granted again."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    latency = HistogramSnapshot(buckets=[1000, 49], sum_us=49_000, min_us=1000, max_us=1000)
    half = worker.build_report(
        lease, "e1", done=lease.start + 50, unfinished=[lease.start + 10], latency=latency,
        outcomes=[49, 0, 0, 0, 0, 0], statuses={"200": 49},
    )  # fmt: skip
    worker.send(worker.build_claim(lease, "e1"), half)
    worker.leases.discard(lease.id)
    wait_until(lambda: bool(api.summary(run)["accounted"] == 49), 10, "the part is accounted")
    assert_account_balances(api.summary(run))
    worker.execute_next(4)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 1
