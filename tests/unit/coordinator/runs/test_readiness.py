import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.coordinators.leases import deal_lease
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.files.file_store import FileStore
from oku_coordinator.kube.pods import PodReadiness
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.hooks import lose_attempt, start_attempt
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, start_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.storage_health import Space
from oku_coordinator.ledger.tables.run_table import fetch_current_run
from oku_coordinator.runs.file_keeper import FileKeeper
from oku_coordinator.runs.notices import Troubles
from oku_coordinator.runs.readiness import (
    LONGEST_NOTICE,
    QueueFullError,
    Readiness,
    round_up_latency,
)
from oku_coordinator.settings import FileLimits
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.outcome import NOT_SENT, build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.messaging.hook import HookAttempt
from oku_core.messaging.lease import build_lease_id
from oku_core.messaging.process_ends import HostEnd, HostEndReason
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.spec.files import SpecFiles
from oku_core.spec.spec import Hook, Spec
from oku_core.spec.values.file_reference import FileRef
from oku_core.spec.values.quantity import Rate

if TYPE_CHECKING:
    from oku_coordinator.kube.facade import KubeFacade

NOBODY = "waiting for a worker to connect"


class PodsTwin:
    """A stand-in for what is known of a cluster."""

    def __init__(self) -> None:
        self.workers = PodReadiness()
        self.delay_servers = PodReadiness()
        self.trouble = ""
        self.has_servers = True

    def check(self, spec: Spec) -> None:
        """Refuse every spec."""
        raise UserError(f"workers: {spec.workers} is too many")

    def count_workers(self, _: Spec) -> int:
        """How many workers a run gets."""
        return max(1, self.workers.wanted)

    def may_start(self, _: RunRecord) -> bool:
        """Whether the delay servers are ready."""
        return self.has_servers


class TroublesTwin(Troubles):
    """The troubles of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def find_broker_trouble(self) -> str:
        """As it was set."""
        return self._world.broker_trouble

    def list_other_troubles(self) -> Iterator[str]:
        """As they were set."""
        return iter(self._world.troubles)


class World:
    """Readiness in and out of a cluster, with what it looks at."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.roster = Roster(10.0)
        self.pods = PodsTwin()
        self.troubles: list[str] = []
        self.broker_trouble = ""
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.alone = self.build(troubles=TroublesTwin(self))
        self.in_cluster = self.build(kube=cast("KubeFacade", self.pods), troubles=TroublesTwin(self))

    def build(self, **parts: Any) -> Readiness:
        """Readiness with other parts beside it."""
        return Readiness(self.ledger, self.roster, self.assignment, **parts)

    def settle(self) -> None:
        """The run that has its turn gets its workers."""
        self.assignment.settle(read(self.ledger, fetch_current_run))

    def record(self, *workers: str, stopping: bool = False) -> None:
        """These workers speak."""
        for worker in workers:
            self.roster.record(
                Progress(worker=worker, incarnation=worker, at=0.0, stopping=stopping), 0.0, 0.0
            )
        self.settle()


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world without workers in which nothing is wanted and nothing is wrong."""
    return World(ledger)


@pytest.fixture
def pending(ledger: Ledger) -> RunRecord:
    """A pending run that has its turn."""
    return change(ledger, create_run, "r1", Spec(requests=100), 0.0)


@pytest.fixture
def running(ledger: Ledger, pending: RunRecord) -> RunRecord:
    """A running run that has its turn and an active lease."""
    record = change(ledger, change_state, pending.run, RunState.RUNNING, 1.0)
    deal_lease(ledger, pending.run, 10, 2.0)
    return record


def test_a_run_waits_for_a_worker(world: World, pending: RunRecord) -> None:
    """A worker that is about to leave does not count."""
    assert world.alone.build_notices(pending) == [NOBODY]
    world.record("w1", stopping=True)
    assert world.alone.build_notices(pending) == [NOBODY]
    world.record("w2")
    assert world.alone.build_notices(pending) == []


def test_a_run_whose_workers_have_all_gone_waits_again(world: World, running: RunRecord) -> None:
    """A run that is pausing or cancelling does not."""
    assert world.alone.build_notices(running) == [NOBODY]
    pausing = change(world.ledger, change_state, "r1", RunState.PAUSING, 3.0)
    assert pausing.state == RunState.PAUSING
    assert world.alone.build_notices(pausing) == []


def test_a_run_says_which_of_its_workers_are_missing(ledger: Ledger) -> None:
    """It waits for those of its stack; once it has begun without some, it says so until they are there."""
    world = World(ledger)
    names = [f"w{number}" for number in range(1, 6)]
    stack = world.build(expected_workers=names)
    run = change(ledger, create_run, "r1", Spec(), 0.0)
    said = [stack.build_notices(run)]
    for name in names[:4]:
        world.record(name)
        said.append(stack.build_notices(run))
    assert said == [
        ["waiting for workers: 0 of 5 connected: w1, w2 and 3 more are missing"],
        ["waiting for workers: 1 of 5 connected: w2, w3 and 2 more are missing"],
        ["waiting for workers: 2 of 5 connected: w3, w4 and w5 are missing"],
        ["waiting for workers: 3 of 5 connected: w4 and w5 are missing"],
        ["waiting for workers: 4 of 5 connected: w5 is missing"],
    ]
    run = change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    assert stack.build_notices(run) == ["4 of 5 workers are connected: w5 is missing"]
    world.record("w5")
    assert stack.build_notices(run) == []


def test_workers_that_nobody_has_named_are_counted(ledger: Ledger) -> None:
    """A spec may ask for more workers than its coordinator knows by name."""
    world = World(ledger)
    stack = world.build(expected_workers=["w1"])
    run = change(ledger, create_run, "r1", Spec(workers=2), 0.0)
    world.record("w1")
    assert stack.build_notices(run) == ["waiting for workers: 1 of 2 connected"]


def test_a_run_with_more_workers_than_requests_in_flight_shows_how_many_take_part(ledger: Ledger) -> None:
    """Whether its spec asks for them, or they are just there."""
    world = World(ledger)
    world.record(*(f"w{number}" for number in range(40)))
    for run, spec, notice in (
        (
            "r1",
            Spec(requests=100, concurrency=10),
            "10 of 40 workers take part, with one each of 10 in flight",
        ),
        (
            "r2",
            Spec(requests=100, concurrency=3, workers=5),
            "3 of 5 workers take part, with one each of 3 in flight",
        ),
        (
            "r3",
            Spec(requests=100, concurrency=9, connections=2),
            "2 of 40 workers take part, with one each of 2 connections",
        ),
        ("r4", Spec(requests=100, concurrency=40), None),
    ):
        change(ledger, create_run, run, spec, 0.0)
        world.settle()
        assert len(world.assignment.workers(run)) == spec.most_workers, run
        record = change(ledger, change_state, run, RunState.RUNNING, 1.0)
        assert world.alone.build_notices(record) == ([notice] if notice else []), run
        change(ledger, change_state, run, RunState.CANCELLING, 2.0)


def test_a_run_waits_for_workers_that_are_being_replaced(world: World, pending: RunRecord) -> None:
    """Else it would begin with those that have run no user code; it waits for none that is silent."""
    world.record("w1")
    used = Progress(worker="w2", incarnation="used", at=0.0, code_run="r0")
    for progress in (used, msgspec.structs.replace(used, stopping=True)):
        world.roster.record(progress, 0.0, 0.0)
        world.settle()
        assert world.alone.count_workers(pending).missing == 1
        assert world.alone.build_notices(pending) == ["waiting for workers: 1 of 2 connected"]
    world.roster.record(Progress(worker="w1", incarnation="w1", at=0.0), 100.0, 0.0)
    assert [worker.name for worker in world.roster.mark_suspects(100.0)] == ["w2"]
    assert world.alone.count_workers(pending).missing == 0
    world.record("w2")
    assert world.alone.count_workers(pending).there == 2


@pytest.mark.parametrize(
    ("changes", "in_flight", "ended", "notice"),
    [
        (
            {},
            10,
            50,
            "20 in flight can sustain at most 100/s at a latency of 200 ms; needs 200",
        ),
        ({}, 8, 50, ""),
        ({"concurrency": 200}, 100, 500, ""),
        (
            {"concurrency": 2000}, 1000, 200,
            "2,000 in flight can sustain at most 400/s at a latency of 5.0 s; needs 5000",
        ),
    ],
)  # fmt: skip
def test_a_rate_that_the_window_cannot_hold_is_told(
    ledger: Ledger, changes: dict[str, Any], in_flight: int, ended: int, notice: str
) -> None:
    """By Little's law, from what is in flight and what ends; as long as the window is not full, it holds."""
    world, spec = World(ledger), Spec(requests=10_000, rate=Rate("1000/s"), duration_s=10.0, concurrency=20)
    run = change(ledger, create_run, "r1", msgspec.structs.replace(spec, **changes), 0.0)
    run = change(ledger, change_state, "r1", RunState.RUNNING, 1.0)
    outcomes = [ended, *build_no_counts()[1:]]
    outcomes[NOT_SENT] = 400
    done = RunProgress(in_flight=in_flight, outcomes=outcomes)
    seen = Progress(worker="", incarnation="", at=0.0, runs={"r1": done}, clock_bound_s=0.0)
    for second in range(3):
        for name in ("w1", "w2"):
            leases = {build_lease_id("r1", 1): LeaseProgress(0, 1, outcomes)}
            progress = msgspec.structs.replace(seen, worker=name, incarnation=name, leases=leases)
            world.roster.record(progress, float(second), 0.0)
    world.settle()
    assert world.alone.build_notices(run) == (
        [notice.replace("needs", "1,000/s needs --concurrency")] if notice else []
    )


@given(st.floats(1e-6, 1e6))
def test_a_latency_is_rounded_up_to_one_of_few(latency_s: float) -> None:
    """So that a notice stays the same while it hardly changes."""
    assert 0.99 * latency_s <= round_up_latency(latency_s) <= 1.34 * latency_s


def test_a_run_at_rest_waits_for_nothing(world: World, pending: RunRecord) -> None:
    """It has no notices, whatever is wrong."""
    world.pods.trouble = "gone"
    world.troubles = ["gone"]
    change(world.ledger, create_run, "r2", Spec(), 1.0)
    for state in (RunState.PAUSED, RunState.CANCELLED):
        assert (
            world.in_cluster.build_notices(change(world.ledger, change_state, pending.run, state, 2.0)) == []
        )


def test_a_run_waits_for_its_turn(world: World, running: RunRecord) -> None:
    """The notice says what keeps the run in front, too."""
    waiting = change(world.ledger, create_run, "r2", Spec(), 1.0)
    world.pods.trouble = "gone"
    for state in (RunState.RUNNING, RunState.PAUSING):
        if state != running.state:
            change(world.ledger, change_state, "r1", state, 3.0)
        why = f": {NOBODY}" if state == RunState.RUNNING else ": Kubernetes: gone"
        assert world.in_cluster.build_notices(waiting) == [f"waiting for its turn: run r1 is {state}{why}"]
    world.record("w1")
    world.pods.trouble = ""
    assert world.in_cluster.build_notices(waiting) == ["waiting for its turn: run r1 is pausing"]


def test_the_queue_has_an_end(world: World, pending: RunRecord) -> None:
    """Runs at rest do not count."""
    change(world.ledger, create_run, "r2", Spec(), 1.0)
    readiness = world.build(most_queued=2)
    with pytest.raises(QueueFullError, match="2 runs are pending or active, and at most 2 may be"):
        readiness.check_queue()
    change(world.ledger, change_state, pending.run, RunState.CANCELLED, 2.0)
    readiness.check_queue()


def test_in_a_cluster_it_is_said_how_many_workers_are_here(world: World, pending: RunRecord) -> None:
    """The notice has the connected workers, the wanted ones, and why the others are missing."""
    assert world.in_cluster.build_notices(pending) == ["waiting for workers: 0 of 1 connected"]
    world.pods.workers = PodReadiness(0, 4)
    assert world.in_cluster.build_notices(pending) == ["waiting for workers: 0 of 4 connected"]
    world.pods.workers = PodReadiness(0, 4, "no node has room")
    assert world.in_cluster.build_notices(pending) == [
        "waiting for workers: 0 of 4 connected: no node has room"
    ]
    world.pods.workers = PodReadiness(4, 4)
    assert world.in_cluster.build_notices(pending) == ["waiting for workers: 0 of 4 connected"]


def test_a_run_that_has_begun_with_few_workers_says_so_while_pods_are_missing(
    world: World, running: RunRecord
) -> None:
    """Pods that run but have not been heard yet are no reason for a notice."""
    world.record("w1", "w2")
    for there, notices in (
        (2, ["waiting for workers: 2 of 4 connected"]),
        (3, ["waiting for workers: 2 of 4 connected"]),
        (4, []),
    ):
        world.pods.workers = PodReadiness(there, 4)
        assert world.in_cluster.build_notices(running) == notices
    world.record("w3", "w4")
    world.pods.workers = PodReadiness(2, 4)
    assert world.in_cluster.build_notices(running) == []


def test_in_a_cluster_a_run_waits_for_its_delay_servers(world: World, pending: RunRecord) -> None:
    """They have a notice as soon as they are asked for, until the run may begin."""
    world.pods.workers, world.pods.has_servers = PodReadiness(0, 1), False
    assert world.in_cluster.build_notices(pending) == ["waiting for workers: 0 of 1 connected"]
    world.pods.delay_servers = PodReadiness(1, 2, "ErrImagePull")
    assert world.in_cluster.build_notices(pending) == [
        "waiting for workers: 0 of 1 connected",
        "waiting for delay servers: 1 of 2 ready: ErrImagePull",
    ]
    world.record("w1")
    assert world.in_cluster.build_notices(pending) == [
        "waiting for delay servers: 1 of 2 ready: ErrImagePull"
    ]
    world.pods.delay_servers = PodReadiness(2, 2, surplus=1)
    assert world.in_cluster.build_notices(pending)[-1] == (
        "waiting for delay servers: 2 of 2 ready, 1 still to be removed"
    )
    world.pods.has_servers = True
    assert world.in_cluster.build_notices(pending) == []


def test_what_does_not_go_as_it_should_is_said_as_long_as_it_lasts(world: World, running: RunRecord) -> None:
    """Kubernetes and Loki have a line each, which is short enough to be read."""
    world.record("w1")
    world.pods.trouble = "PATCH /apis: 403 Forbidden: " + "no\nrights " * 100
    world.troubles = ["Loki: 503 Service Unavailable"]
    kubernetes, loki = world.in_cluster.build_notices(running)
    assert kubernetes.startswith("Kubernetes: PATCH /apis: 403 Forbidden: no rights no rights")
    assert kubernetes.endswith(" …")
    assert len(kubernetes) <= LONGEST_NOTICE
    assert loki == "Loki: 503 Service Unavailable"
    assert world.alone.build_notices(running) == [loki]
    world.pods.trouble = ""
    world.troubles.clear()
    assert world.in_cluster.build_notices(running) == []


def test_a_spec_names_no_files_that_nobody_has_allowed(world: World, tmp_path: Path) -> None:
    """Such a spec is refused before a worker hears of it."""
    spec = Spec(cacert=f"{tmp_path}/ca.pem")
    with pytest.raises(UserError, match=r"^cacert: .* cannot be used: files are read only from the folders"):
        world.alone.check(spec)
    world.build(files=SpecFiles((tmp_path,))).check(spec)


def test_a_broker_that_is_away_is_told(world: World, running: RunRecord) -> None:
    """Without it a run stands still, and nobody else says so."""
    world.record("w1")
    assert world.alone.build_notices(running) == []
    world.broker_trouble = "the broker does not answer"
    assert world.alone.build_notices(running) == [
        "the broker does not answer: no leases go out and no checkpoints come in"
    ]


def test_a_ledger_that_cannot_be_used_is_reported_first(
    world: World, running: RunRecord, ledger: Ledger
) -> None:
    """It is the cause of whatever else is wrong."""
    world.record("w1")
    world.broker_trouble = "the broker does not answer"
    ledger.storage.record_space(Space(0, 10))
    assert world.alone.build_notices(running) == [
        "the ledger cannot be used: its disk is full; nothing is dealt or accounted until then",
        "the broker does not answer: no leases go out and no checkpoints come in",
    ]
    assert world.alone.find_obstacle(running).startswith("the ledger cannot be used")


def test_ends_of_user_code_are_reported_for_their_run(
    world: World, running: RunRecord, ledger: Ledger
) -> None:
    """There is one line for each reason, with its count, and none of another run."""
    killed, crashed, other = (
        HostEnd(run=run, number=1, reason=HostEndReason.OUT_OF_MEMORY, text=text)
        for run, text in (("r1", "it was killed"), ("r1", "it crashed"), ("r0", "it exited"))
    )
    for worker, ends in (("w1", [other, killed]), ("w2", [killed, killed]), ("w3", [crashed])):
        world.roster.record(Progress(worker=worker, incarnation=worker, at=0.0, host_ends=ends), 0.0, 0.0)
    world.settle()
    assert world.alone.build_notices(running) == [
        "worker w1: the process of the user code has ended: it was killed (and 2 more)",
        "worker w3: the process of the user code has ended: it crashed",
    ]
    world.record("w1", "w2", "w3")
    assert world.alone.build_notices(running) == []


def test_what_workers_say_of_themselves_is_told_once(world: World, running: RunRecord) -> None:
    """There is one notice however many workers say the same, as long as one of them does."""
    trouble = "timeouts: RuntimeError: unforeseen"
    for worker in ("w1", "w2", "w3"):
        troubles = [] if worker == "w3" else [trouble]
        world.roster.record(Progress(worker=worker, incarnation=worker, at=0.0, troubles=troubles), 0.0, 0.0)
    assert world.alone.build_notices(running) == [f"worker w1: {trouble} (and 1 more)"]
    world.record("w1", "w2")
    assert world.alone.build_notices(running) == []


def test_a_worker_that_does_not_know_what_time_it_is_gets_nothing_on_schedule(
    world: World, ledger: Ledger
) -> None:
    """The run says so, if it has a schedule, and until they know."""
    run = change(ledger, create_run, "r1", Spec(requests=100, rate=Rate("10/s"), duration_s=10.0), 0.0)
    world.record("w1", "w2", "w3")
    world.roster.record(Progress(worker="w3", incarnation="w3", at=0.0, clock_bound_s=0.0), 0.0, 0.0)
    world.settle()
    assert world.alone.build_notices(run) == [
        "worker w1 does not know the coordinator's clock yet (and 1 more)"
    ]


def test_a_run_says_which_hook_it_waits_for(world: World, ledger: Ledger) -> None:
    """Who calls it, and what became of the try before."""
    world.record("w1")
    change(ledger, create_run, "r9", Spec(requests=10, hooks=(Hook.SETUP, Hook.TEARDOWN)), 0.0)
    run = change(ledger, start_run, "r9", 1.0)
    assert world.alone.build_notices(run) == []
    change(ledger, start_attempt, "r9", Hook.SETUP, "w1", "w1", 1.0)
    assert world.alone.build_notices(run) == ["waiting for setup of the scenario: worker w1 calls it"]
    change(ledger, lose_attempt, HookAttempt("r9", Hook.SETUP, 1), "worker w1 was lost", 2.0)
    assert world.alone.build_notices(run) == [
        "waiting for setup of the scenario: it will be called again: worker w1 was lost"
    ]
    change(ledger, start_attempt, "r9", Hook.SETUP, "w1", "w1", 3.0)
    assert world.alone.build_notices(run) == ["waiting for setup of the scenario: worker w1 calls it, try 2"]


async def test_bodies_that_do_not_fit_into_a_worker_are_refused(world: World) -> None:
    """The smallest living worker that has reported its memory decides; without any, workers refuse them."""
    spec = Spec(body="{i}" + "x" * 1000, concurrency=200)
    world.record("w1")
    await world.alone.check_memory(spec)
    for worker, memory_bytes in (("w2", 10**9), ("w3", 100_000)):
        progress = Progress(worker=worker, incarnation=worker, at=0.0, memory_bytes=memory_bytes)
        world.roster.record(progress, 0.0, 0.0)
    fault = r"^body: .* 100 in flight .* take 100\.3 kB of memory, but it may use 100\.0 kB"
    with pytest.raises(UserError, match=fault):
        await world.alone.check_memory(spec)
    await world.alone.check_memory(msgspec.structs.replace(spec, requests=99))
    await world.alone.check_memory(msgspec.structs.replace(spec, body="x" * 1003))


async def test_long_bodies_are_read_in_a_thread(world: World, tmp_path: Path) -> None:
    """The event loop of the coordinator does not wait for a search through 64 MB."""
    threads: list[int] = []

    class Keeper(FileKeeper):
        def find(self, digest: str) -> Path:
            threads.append(threading.get_ident())
            path = tmp_path / digest
            path.write_bytes(b"{i}")
            return path

        def check(self, spec: Spec) -> None:
            """All files are here."""

    progress = Progress(worker="w1", incarnation="w1", at=0.0, memory_bytes=1000)
    world.roster.record(progress, 0.0, 0.0)
    readiness = dataclasses.replace(
        world.alone, keeper=Keeper(world.ledger, FileStore(tmp_path, FileLimits()))
    )
    spec = Spec(body=FileRef.build("0" * 64, 1000, "body.bin"), concurrency=100)
    with pytest.raises(UserError, match=r"^body: .* 100 in flight"):
        await readiness.check_memory(spec)
    assert threads
    assert threading.get_ident() not in threads
