from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.kit.coordinators.leases import deal_lease

from oku_coordinator.kube.pod_readiness import PodReadiness
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.runs.readiness import LONGEST_NOTICE, QueueFullError, Readiness
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.messaging.progress import Progress
from oku_core.spec.files import SpecFiles
from oku_core.spec.spec import Spec

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

    def may_begin(self, _: RunRecord) -> bool:
        """Whether the delay servers are ready."""
        return self.has_servers


class World:
    """Readiness in and out of a cluster, with what it looks at."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.roster = Roster(10.0)
        self.pods = PodsTwin()
        self.troubles: list[str] = []
        self.has_broker = True
        self.alone = Readiness(
            ledger, self.roster, has_broker=lambda: self.has_broker, find_troubles=lambda: self.troubles
        )
        self.in_cluster = Readiness(
            ledger, self.roster, kube=cast("KubeFacade", self.pods), find_troubles=lambda: self.troubles
        )

    def record(self, *workers: str, stopping: bool = False) -> None:
        """These workers speak."""
        for worker in workers:
            self.roster.record(
                Progress(worker=worker, incarnation=worker, at=0.0, stopping=stopping), 0.0, 0.0
            )


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world without workers in which nothing is wanted and nothing is wrong."""
    return World(ledger)


@pytest.fixture
def pending(ledger: Ledger) -> RunRecord:
    """A pending run that has its turn."""
    return ledger.runs.create("r1", Spec(requests=100), 0.0)


@pytest.fixture
def running(ledger: Ledger, pending: RunRecord) -> RunRecord:
    """A running run that has its turn and an active lease."""
    record = ledger.runs.change_state(pending.run, RunState.RUNNING, 1.0)
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
    pausing = world.ledger.runs.change_state("r1", RunState.PAUSING, 3.0)
    assert pausing.state == RunState.PAUSING
    assert world.alone.build_notices(pausing) == []


def test_a_run_says_which_of_its_workers_are_missing(ledger: Ledger) -> None:
    """It waits for those of its stack; once it has begun without some, it says so until they are there."""
    world = World(ledger)
    names = [f"w{number}" for number in range(1, 6)]
    stack = Readiness(ledger, world.roster, expected_workers=names)
    run = ledger.runs.create("r1", Spec(), 0.0)
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
    run = ledger.runs.change_state("r1", RunState.RUNNING, 1.0)
    assert stack.build_notices(run) == ["4 of 5 workers are connected: w5 is missing"]
    world.record("w5")
    assert stack.build_notices(run) == []


def test_workers_that_nobody_has_named_are_counted(ledger: Ledger) -> None:
    """A spec may ask for more workers than its coordinator knows by name."""
    world = World(ledger)
    stack = Readiness(ledger, world.roster, expected_workers=["w1"])
    run = ledger.runs.create("r1", Spec(workers=2), 0.0)
    world.record("w1")
    assert stack.build_notices(run) == ["waiting for workers: 1 of 2 connected"]


def test_a_run_at_rest_waits_for_nothing(world: World, pending: RunRecord) -> None:
    """It has no notices, whatever is wrong."""
    world.pods.trouble = "gone"
    world.troubles = ["gone"]
    world.ledger.runs.create("r2", Spec(), 1.0)
    for state in (RunState.PAUSED, RunState.CANCELLED):
        assert world.in_cluster.build_notices(world.ledger.runs.change_state(pending.run, state, 2.0)) == []


def test_a_run_waits_for_its_turn(world: World, running: RunRecord) -> None:
    """The notice says what keeps the run in front, too."""
    waiting = world.ledger.runs.create("r2", Spec(), 1.0)
    world.pods.trouble = "gone"
    for state in (RunState.RUNNING, RunState.PAUSING):
        if state != running.state:
            world.ledger.runs.change_state("r1", state, 3.0)
        why = f": {NOBODY}" if state == RunState.RUNNING else ": Kubernetes: gone"
        assert world.in_cluster.build_notices(waiting) == [f"waiting for its turn: run r1 is {state}{why}"]
    world.record("w1")
    world.pods.trouble = ""
    assert world.in_cluster.build_notices(waiting) == ["waiting for its turn: run r1 is pausing"]


def test_who_waits_for_a_run_that_has_no_place_is_told_so(world: World, pending: RunRecord) -> None:
    """Both runs have the notice."""
    waiting = world.ledger.runs.create("r2", Spec(), 1.0)
    world.pods.workers = PodReadiness(0, 3, "0/3 nodes are available")
    obstacle = "waiting for workers: 0 of 3 connected: 0/3 nodes are available"
    assert world.in_cluster.build_notices(pending) == [obstacle]
    assert world.in_cluster.build_notices(waiting) == [f"waiting for its turn: run r1 is pending: {obstacle}"]


def test_the_queue_has_an_end(world: World, pending: RunRecord) -> None:
    """Runs at rest do not count."""
    world.ledger.runs.create("r2", Spec(), 1.0)
    readiness = Readiness(world.ledger, world.roster, most_queued=2)
    with pytest.raises(QueueFullError, match="2 runs are pending or active, and at most 2 may be"):
        readiness.check_queue()
    world.ledger.runs.change_state(pending.run, RunState.CANCELLED, 2.0)
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


def test_a_cluster_refuses_what_it_cannot_carry_out(world: World) -> None:
    """Outside a cluster there is no bound."""
    with pytest.raises(UserError, match="workers: 9 is too many"):
        world.in_cluster.check(Spec(workers=9))
    world.alone.check(Spec(workers=9))


def test_a_spec_names_no_files_that_nobody_has_allowed(world: World, tmp_path: Path) -> None:
    """Such a spec is refused before a worker hears of it."""
    spec = Spec(cacert=f"{tmp_path}/ca.pem")
    with pytest.raises(UserError, match=r"^cacert: .* cannot be used: files are read only from the folders"):
        world.alone.check(spec)
    Readiness(world.ledger, world.roster, files=SpecFiles((tmp_path,))).check(spec)


def test_a_broker_that_is_away_is_told(world: World, running: RunRecord) -> None:
    """Without it a run stands still, and nobody else says so."""
    world.record("w1")
    assert world.alone.build_notices(running) == []
    world.has_broker = False
    assert world.alone.build_notices(running) == [
        "the broker does not answer: no leases go out and no checkpoints come in"
    ]


def test_what_workers_say_of_themselves_is_told_once(world: World, running: RunRecord) -> None:
    """There is one notice however many workers say the same, as long as one of them does."""
    trouble = "timeouts: RuntimeError: unforeseen"
    for worker in ("w1", "w2", "w3"):
        troubles = [] if worker == "w3" else [trouble]
        world.roster.record(Progress(worker=worker, incarnation=worker, at=0.0, troubles=troubles), 0.0, 0.0)
    assert world.alone.build_notices(running) == [f"worker w1: {trouble} (and 1 more)"]
    world.record("w1", "w2")
    assert world.alone.build_notices(running) == []
