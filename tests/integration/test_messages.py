"""Messages over the real broker that are doubled, reordered, lost, late or forged; the account holds."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import CoordinatorApi, run_coordinator
from tests.kit.runs.account import assert_account_balances, assert_completed
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.simulated_worker import SimulatedWorker

SPEC: dict[str, Any] = {"requests": 300, "range-size": 100, "url": "http://127.0.0.1:9/{i}"}
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
    """A worker that says what the test wants; it is the only one that lives."""
    with SimulatedWorker(broker_url) as simulated:
        yield simulated
    time.sleep(1.5)  # a tick has counted it by then
    wait_until(lambda: api.read_metric("oku_workers") == 0, 15, "it is dead")


def test_a_doubled_checkpoint_counts_once(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """The same checkpoint three times accounts for its requests once, and nothing is taken as sent again."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    checkpoint = worker.build_checkpoint(lease)
    worker.send(checkpoint, checkpoint, checkpoint)
    worker.forget(lease)
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0


def test_a_checkpoint_may_overtake_the_one_before_it(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """The newest one counts, and an older one that comes after it changes nothing."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    worker.send(
        worker.build_checkpoint(lease, 60, sequence=2, is_final=False),
        worker.build_checkpoint(lease, 30, sequence=1, is_final=False),
    )
    wait_until(lambda: bool(api.summary(run)["accounted"] == 60), 10, "the newest one is accounted")
    worker.send(worker.build_checkpoint(lease, sequence=3))
    worker.forget(lease)
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0


def test_a_lost_checkpoint_is_healed_by_the_next(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """A checkpoint says all since the start of its lease, so nothing depends on those before it."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    worker.send(worker.build_checkpoint(lease, 60, sequence=7, is_final=False))
    control = worker.take_control()
    worker.send(worker.build_checkpoint(lease, sequence=19))
    worker.forget(lease)
    worker.execute_next(2)

    assert control.confirmed == {lease.id: 7}
    assert_completed(api.wait_for_state(run, "completed"))


def test_only_the_process_that_has_a_lease_may_tell_of_it(
    api: CoordinatorApi, worker: SimulatedWorker
) -> None:
    """A process of the same worker, before or after this one, has nothing to say of it."""
    run = api.submit(**SPEC)
    api.settle_metrics()
    foreign = api.count_messages("foreign")
    lease = worker.take_lease()
    worker.send(worker.build_checkpoint(lease), incarnation="another")
    wait_until(lambda: api.count_messages("foreign") == foreign + 1, 10, "it is found foreign")
    assert api.summary(run)["accounted"] == 0
    worker.execute(lease)
    worker.execute_next(2)

    assert_completed(api.wait_for_state(run, "completed"))


def test_a_lost_lease_is_sent_again(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """A worker that lives and does not name its lease has not got it; nothing of it was sent."""
    run = api.submit(**SPEC)
    lost = worker.take_lease()
    worker.forget(lost)
    others = [worker.take_lease() for _ in range(2)]
    found = others.pop(0) if others[0].id == lost.id else worker.take_lease()
    for lease in (*others, found):
        worker.execute(lease)

    assert found == lost
    summary = api.wait_for_state(run, "completed")
    assert_completed(summary)
    assert summary["resent_at_most"] == 0


def test_a_lease_that_a_living_worker_has_dropped_is_dealt_again(
    api: CoordinatorApi, worker: SimulatedWorker
) -> None:
    """What it had accounted stays accounted; what it was allowed to send may have been sent."""
    run = api.submit(**SPEC)
    lost = worker.take_lease()
    worker.send(worker.build_checkpoint(lost, 60, is_final=False, in_flight=[7, 59]))
    wait_until(lambda: bool(api.summary(run)["accounted"] == 58), 10, "its checkpoint is accounted")
    worker.forget(lost)
    accounted = 58
    while accounted < SPEC["requests"]:
        lease = worker.take_lease()
        if lease.id != lost.id:
            accounted += lease.build_ranges().length
            worker.execute(lease)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 42


def test_a_late_checkpoint_does_not_count(
    api: CoordinatorApi, worker: SimulatedWorker, broker_url: str
) -> None:
    """A worker that was declared dead may still speak; its lease has been dealt to another."""
    with SimulatedWorker(broker_url, "mortal") as mortal:
        wait_until(lambda: api.read_metric("oku_workers") == 2, 10, "both live")
        run = api.submit(**SPEC)
        lease = mortal.take_lease()
        mortal.send(mortal.build_checkpoint(lease, 40, is_final=False))
        wait_until(lambda: bool(api.summary(run)["accounted"] == 40), 10, "its checkpoint is accounted")
    accounted = 40
    while accounted < SPEC["requests"]:
        other = worker.take_lease(20)
        accounted += other.build_ranges().length
        worker.execute(other)
    summary = api.wait_for_state(run, "completed")
    api.settle_metrics()
    late = api.count_messages("late")
    mortal.send(mortal.build_checkpoint(lease, sequence=2))
    wait_until(lambda: api.count_messages("late") == late + 1, 10, "it is late")

    assert api.summary(run)["outcomes"] == summary["outcomes"]
    assert_completed(api.summary(run))
    assert api.summary(run)["resent_at_most"] >= 60
    assert {w["name"]: w["lost"] for w in summary["workers"]} == {"simulated": False, "mortal": True}


def test_forged_messages_change_nothing(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """Messages that cannot be true, or cannot be decoded, are dropped; the run goes on."""
    run = api.submit(**SPEC)
    api.settle_metrics()
    untrue, repeated, unknown = (api.count_messages(verdict) for verdict in ("untrue", "repeated", "unknown"))
    lease = worker.take_lease()
    true = worker.build_checkpoint(lease)
    part, empty = true.parts[0], worker.build_checkpoint(lease, 0).parts
    worker.send(
        msgspec.structs.replace(true, lease=f"{run}.1.00000000"),
        msgspec.structs.replace(true, done=true.end + 1),
        msgspec.structs.replace(true, end=true.end + 1),
        msgspec.structs.replace(true, in_flight=[3, 3]),
        msgspec.structs.replace(true, in_flight=[3]),
        msgspec.structs.replace(true, sequence=0),
        msgspec.structs.replace(true, parts=empty),
        msgspec.structs.replace(true, parts=[msgspec.structs.replace(part, statuses={"200": 7})]),
        msgspec.structs.replace(true, parts=[msgspec.structs.replace(part, bytes_received=-1)]),
        msgspec.structs.replace(true, parts=[msgspec.structs.replace(part, per_second={})]),
    )
    worker.send_anything({"type": "checkpoint"})
    worker.send_anything("nonsense")
    worker.send_raw(b"{", "application/json")
    worker.send_raw(b"\x80\x04N.", "application/x-python-serialize")
    worker.send_raw(b'"text"', "application/json")
    wait_until(
        lambda: api.count_messages("untrue") == untrue + 8 and api.count_messages("repeated") == repeated + 1,
        10, "nine checkpoints do not count",
    )  # fmt: skip
    assert api.summary(run)["accounted"] == 0
    worker.execute(lease)
    worker.execute_next(2)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 0
    assert api.count_messages("unknown") == unknown + 1


def test_a_final_checkpoint_gives_the_rest_back(api: CoordinatorApi, worker: SimulatedWorker) -> None:
    """It may cover a part; the rest and what was in flight are dealt again."""
    run = api.submit(**SPEC)
    lease = worker.take_lease()
    worker.send(worker.build_checkpoint(lease, 50, in_flight=[10], end=50))
    worker.forget(lease)
    wait_until(lambda: bool(api.summary(run)["accounted"] == 49), 10, "the part is accounted")
    assert_account_balances(api.summary(run))
    accounted = 49
    while accounted < SPEC["requests"]:
        lease = worker.take_lease()
        accounted += lease.build_ranges().length
        worker.execute(lease)

    summary = api.wait_for_state(run, "completed")

    assert_completed(summary)
    assert summary["resent_at_most"] == 1
