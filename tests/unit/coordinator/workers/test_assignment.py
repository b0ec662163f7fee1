from typing import Any

import pytest
from tests.kit.coordinators.leases import (
    apply_batches,
    build_batch,
    build_checkpoint,
    build_incarnation,
    deal_lease,
    expire,
)
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.hooks import start_attempt
from oku_coordinator.ledger.rules.leases.expiring import give_up_run
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, start_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.workers.assignment import REPORT_WITHIN_S, Assignment, WorkerLimits
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import HookAttempt, HookReport
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.spec.spec import Hook, Spec

TIMEOUT_S = 10.0


class LimitsTwin(WorkerLimits):
    """The limits of a cluster, which may have another number of pods than a run asks for."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def count_assigned(self, run: RunRecord) -> int | None:
        """As many as were set."""
        return super().count_assigned(run) if self._world.limit is None else self._world.limit


class World:
    """Workers, each process with the incarnation that tests use, and an assignment."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.now = 0.0
        self._sequence = 0
        self.start_coordinator()

    def start_coordinator(self) -> None:
        """Know nothing but what is in the ledger."""
        self.limit: int | None = None
        self.roster = Roster(TIMEOUT_S)
        self.assignment = Assignment(
            ledger=self.ledger,
            roster=self.roster,
            limits=LimitsTwin(self),
            monotonic=lambda: self.now,
        )

    def begin(self, run: str, workers: int | None, **spec: Any) -> None:
        """A run begins, with the workers that it is assigned."""
        change(self.ledger, create_run, run, Spec(requests=100, workers=workers, **spec), self.now)
        self.settle()
        change(self.ledger, start_run, run, self.now)

    def end(self, run: str) -> None:
        """A run is cancelled, and no lease of it is out."""
        change(self.ledger, change_state, run, RunState.CANCELLING, self.now)
        assert read(self.ledger, fetch_run, run).state == RunState.CANCELLED

    def speak(self, *workers: str, leases: tuple[str, ...] = (), **changes: Any) -> None:
        """Workers say what they have in hand."""
        for worker in workers:
            self._sequence += 1
            progress = Progress(
                worker=worker, incarnation=changes.pop("incarnation", build_incarnation(worker)), at=self.now,
                sequence=self._sequence, **changes,
                leases={each: LeaseProgress(0, 9, build_no_counts()) for each in leases},
            )  # fmt: skip
            self.roster.record(progress, self.now, self.now)

    def settle(self, after_s: float = 0.0) -> list[str]:
        """The names of the workers of the run that has its turn, after some time."""
        self.now += after_s
        run = read(self.ledger, fetch_current_run)
        self.assignment.settle(run)
        return self.names

    @property
    def names(self) -> list[str]:
        """Those that can take leases."""
        return sorted(worker.name for worker in self.assignment.workers(self.assignment.run))

    def hold(self, worker: str, run: str = "r1") -> str:
        """A worker gets a lease; the id of that."""
        lease = deal_lease(self.ledger, run, 10, self.now, worker=worker)
        return lease.id

    def finish(self, lease: str, run: str = "r1") -> None:
        """The last checkpoint of a lease comes."""
        [record] = [each for each in read(self.ledger, fetch_open_leases, run) if each.id == lease]
        apply_batches(self.ledger, [build_batch(record, build_checkpoint(record))], now=self.now)


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Four workers live."""
    world = World(ledger)
    world.speak("w1", "w2", "w3", "w4")
    return world


def test_a_run_has_as_many_workers_as_it_asks_for(world: World) -> None:
    """All of them if it does not say."""
    for number, (wanted, given) in enumerate([(3, 3), (1, 1), (4, 4), (9, 4), (None, 4)]):
        world.begin(f"r{number}", wanted)
        assert len(world.settle()) == given, wanted
        world.end(f"r{number}")


def test_one_that_leaves_or_refuses_is_replaced_when_it_has_given_back_its_leases(world: World) -> None:
    """Two would work at a time otherwise."""
    world.begin("r1", 1)
    assert world.names == ["w1"]
    lease = world.hold("w1")
    world.speak("w1", stopping=True, leases=(lease,))
    assert world.settle() == []
    world.finish(lease)
    assert world.settle() == ["w2"]
    lease = world.hold("w2")
    world.roster.record_refusal("w2", "b2", ("r1", "no file"), world.now)
    assert world.settle() == []
    world.finish(lease)
    assert world.settle() == ["w3"]


def test_a_worker_that_is_silent_for_a_moment_keeps_its_place(world: World) -> None:
    """Others would take it for good, although it is about to speak."""
    world.begin("r1", 1)
    world.now = 5.0
    world.speak("w2", "w3", "w4")
    assert [worker.name for worker in world.roster.mark_suspects(world.now)] == ["w1"]
    assert world.settle() == ["w1"]
    assert world.assignment.has_suspects


def test_a_suspect_of_no_run_does_not_count(world: World) -> None:
    """What the run does is heard all the same."""
    world.begin("r1", 1)
    world.now = 5.0
    world.speak("w1")
    assert world.roster.mark_suspects(world.now)
    assert not world.assignment.has_suspects


def test_a_worker_is_free_once_the_ledger_has_its_last_checkpoint(world: World) -> None:
    """Even if it names the lease still; not while it works on what was taken back from it."""
    world.begin("r1", 1)
    lost, closed = world.hold("w1"), world.hold("w1")
    world.finish(closed)
    expire(world.ledger, [lost], ExpiryReason.DROPPED, world.now)
    world.end("r1")
    world.speak("w1", leases=(lost, closed))
    world.begin("r2", 4)
    assert world.settle() == ["w2", "w3", "w4"]
    world.speak("w1", leases=(closed,))
    assert world.settle() == ["w1", "w2", "w3", "w4"]


def test_a_worker_is_free_once_its_hook_has_returned(world: World) -> None:
    """A worker that still calls a hook that nobody waits for is not."""
    world.begin("r1", 1, hooks=(Hook.SETUP, Hook.TEARDOWN))
    attempt = HookAttempt("r1", Hook.SETUP, 1)
    change(world.ledger, start_attempt, "r1", Hook.SETUP, "w1", "b1", world.now)
    world.speak("w1", hooks=[attempt])
    change(world.ledger, give_up_run, "r1", RunState.FAILED, world.now, "x")
    world.begin("r2", 4)
    assert world.settle() == ["w2", "w3", "w4"]
    world.speak("w1")
    assert world.settle() == ["w1", "w2", "w3", "w4"]


def test_what_a_hook_returned_is_enough(world: World) -> None:
    """The worker repeats it until it is told that the ledger has it."""
    world.begin("r1", 1, hooks=(Hook.SETUP,))
    attempt = HookAttempt("r1", Hook.SETUP, 1)
    change(world.ledger, start_attempt, "r1", Hook.SETUP, "w1", "b1", world.now)
    report = HookReport(attempt=attempt, error="ValueError")
    batch = CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[], hooks=[report])
    apply_batches(world.ledger, [batch], now=world.now)
    assert read(world.ledger, fetch_run, "r1").state == RunState.FAILED
    world.speak("w1", hooks=[attempt])
    world.begin("r2", 4)
    assert world.settle() == ["w1", "w2", "w3", "w4"]


def test_a_new_coordinator_takes_the_one_that_calls_the_setup(world: World) -> None:
    """Nobody holds a lease meanwhile."""
    world.begin("r1", 1, hooks=(Hook.SETUP,))
    change(world.ledger, start_attempt, "r1", Hook.SETUP, "w4", "b4", world.now)
    world.start_coordinator()
    world.speak("w1", "w2", "w3")
    assert world.settle(REPORT_WITHIN_S) == []
    world.speak("w4")
    assert world.settle() == ["w4"]


def test_a_new_coordinator_waits_a_moment_for_those_that_have_worked_on_the_run(world: World) -> None:
    """No lease may be out, as in a stage without requests; then it takes whoever is there."""
    world.begin("r1", 1)
    world.finish(world.hold("w3"))
    for speaks in (True, False):
        world.start_coordinator()
        world.speak("w1", "w2")
        assert world.settle() == []
        if speaks:
            world.speak("w3")
            assert world.settle(1.0) == ["w3"]
        else:
            assert world.settle(REPORT_WITHIN_S - 1.0) == []
            assert world.settle(1.0) == ["w1"]


def test_a_run_that_asks_for_no_number_waits_for_nobody(world: World) -> None:
    """A new coordinator gives it all that it hears of."""
    world.begin("r1", None)
    world.start_coordinator()
    world.speak("w2")
    assert world.settle() == ["w2"]


def test_a_run_that_stops_needs_nobody_else(world: World) -> None:
    """Its leases are called back."""
    world.begin("r1", 1)
    lease = world.hold("w1")
    change(world.ledger, change_state, "r1", RunState.PAUSING, world.now)
    world.speak("w1", incarnation="new")
    expire(world.ledger, [lease], ExpiryReason.WORKER_LOST, world.now)
    world.settle()
    assert world.assignment.find_members("r1") == []


def test_a_teardown_that_nobody_is_there_for_gets_one_worker(world: World) -> None:
    """As that of a run which was paused and is cancelled."""
    world.begin("r1", 3, hooks=(Hook.TEARDOWN,))
    world.finish(world.hold("w2"))
    change(world.ledger, change_state, "r1", RunState.PAUSING, world.now)
    assert world.settle() == []
    change(world.ledger, change_state, "r1", RunState.CANCELLED, world.now)
    assert read(world.ledger, fetch_run, "r1").state == RunState.TEARING_DOWN
    assert world.settle() == ["w2"]


def test_the_number_may_change_meanwhile(world: World) -> None:
    """More are taken; those that are too many stay until they leave, as pods do that are scaled away."""
    world.begin("r1", 2)
    world.limit = 3
    assert len(world.settle()) == 3
    world.limit = 1
    assert len(world.settle()) == 3
    world.speak("w1", "w2", stopping=True)
    assert world.settle() == ["w3"]


def test_those_that_are_new_are_told(world: World) -> None:
    """Once each."""
    change(world.ledger, create_run, "r1", Spec(requests=9, workers=2), 0.0)
    run = read(world.ledger, fetch_current_run)
    assert [worker.name for worker in world.assignment.settle(run)] == ["w1", "w2"]
    assert world.assignment.settle(run) == []


def test_clocks_of_its_own_workers_count(world: World) -> None:
    """How well another one knows the time makes no difference to a run."""
    world.begin("r1", 1)
    world.speak("w1", clock_bound_s=0.001)
    world.speak("w2", clock_bound_s=0.5)
    assert world.assignment.clock_bound_s == 0.001


def test_a_worker_that_has_run_user_code_takes_no_other_run(ledger: Ledger) -> None:
    """Until a fresh process has its name; it may go on with the same run."""
    world = World(ledger)
    world.speak("w1", code_run="r1")
    world.begin("r1", workers=1)
    assert [worker.name for worker in world.assignment.workers("r1")] == ["w1"]
    world.end("r1")
    world.begin("r2", workers=1)
    assert world.assignment.workers("r2") == []
    world.speak("w1", incarnation="fresh")
    world.settle()
    assert [worker.incarnation for worker in world.assignment.workers("r2")] == ["fresh"]
