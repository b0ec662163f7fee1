from typing import Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.leases import apply_batches, build_incarnation, deal_lease
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.hooks import start_attempt
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run, start_run
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.runs.readiness import NOBODY, Readiness
from oku_coordinator.runs.runs import Runs
from oku_coordinator.servers.served_count import NamedServers, ServedCounter
from oku_coordinator.watches.worker_watch import WorkerWatch
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import HookAttempt, HookReport
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.spec.spec import Hook, Spec

TIMEOUT_S = 10.0
"""A worker that is silent for longer is dead, and a coordinator hears for so long before it judges."""
HINT = "; --give-up-after sets the limit"


class World:
    """A queue, workers, and a watch that looks each second."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.now = 0.0
        self.start_coordinator()
        self.pass_time(TIMEOUT_S)

    def start_coordinator(self) -> None:
        """Know nothing but what is in the ledger."""
        self.roster = Roster(TIMEOUT_S)
        assignment = Assignment(ledger=self.ledger, roster=self.roster, monotonic=lambda: self.now)
        self.readiness = Readiness(self.ledger, self.roster, assignment)
        counter = ServedCounter(NamedServers([]), self.ledger)
        self.runs = Runs(self.ledger, counter, LoopSignals(), BrokerTwin(), self.readiness, lambda: self.now)
        self.watch = WorkerWatch(self.ledger, self.runs, self.readiness)

    def submit(self, run: str, after_s: float | None = 300.0, **spec: Any) -> None:
        """Submit a run that is given up after a time."""
        change(self.ledger, create_run, run, Spec(requests=10, give_up_after_s=after_s, **spec), self.now)

    def begin(self, run: str, **spec: Any) -> None:
        """Submit a run, and let it begin with a worker."""
        self.submit(run, **spec)
        self.speak("w1")
        change(self.ledger, start_run, run, self.now)

    def speak(self, worker: str, **changes: Any) -> None:
        """A worker says that it is here, and what it has in hand."""
        progress = Progress(worker=worker, incarnation=build_incarnation(worker), at=0.0, **changes)
        self.roster.record(progress, self.now, self.now)

    def pass_time(self, seconds: float, *speaking: str, **changes: Any) -> None:
        """Let time pass in which some workers speak; the others die once they are silent for long."""
        for _ in range(round(seconds)):
            self.now += 1.0
            for worker in speaking:
                self.speak(worker, **changes)
            self.roster.remove_silent(self.now)
            self.look()

    def look(self) -> None:
        """Look as a round does."""
        self.readiness.assignment.settle(read(self.ledger, fetch_current_run))
        self.watch.cancel_abandoned(self.now)

    def miss(self, seconds: float) -> None:
        """Let time pass in which nobody can be heard, as a round does that begins after it."""
        self.now += seconds
        self.roster.reset_timers(self.now)
        self.watch.reset_timers(self.now)
        self.look()

    def states(self, *runs: str) -> list[RunState]:
        """The states of runs."""
        return [read(self.ledger, fetch_run, run).state for run in runs]


def held(*leases: str) -> dict[str, LeaseProgress]:
    """How far a worker is with leases that it has in hand."""
    return {lease: LeaseProgress(0, 9, build_no_counts()) for lease in leases}


@pytest.fixture
def world(ledger: Ledger) -> World:
    """One whose coordinator has run for a while."""
    return World(ledger)


def test_a_queued_run_without_a_worker_is_cancelled_in_time(world: World) -> None:
    """Its reason says for how long it had none, and what keeps them away."""
    world.submit("r1", 300.0)
    world.look()
    world.pass_time(299)
    assert world.states("r1") == [RunState.PENDING]
    world.pass_time(1)
    record = read(world.ledger, fetch_run, "r1")
    assert record.state == RunState.CANCELLED
    assert record.reason == f"no worker for 5 min 00 s: {NOBODY}{HINT}"
    assert record.is_given_up


def test_a_run_is_not_given_up_for_time_before_its_submission(world: World) -> None:
    """It may come just before the watch looks, which looks at the time since it looked last."""
    world.now += 30.0
    world.submit("r1", 30.0)
    world.look()
    world.pass_time(29)
    assert world.states("r1") == [RunState.PENDING]
    world.pass_time(1)
    assert world.states("r1") == [RunState.CANCELLED]


def test_the_time_behind_other_runs_counts(world: World) -> None:
    """The one that has the workers goes on, and so does one that allows for more, or for ever."""
    world.begin("r1", after_s=5.0)
    world.submit("r2", 30.0)
    world.submit("r3", 40.0)
    world.submit("r4", None)
    world.look()
    world.pass_time(30, "w1")
    assert world.states("r1", "r2", "r3", "r4") == [
        RunState.RUNNING, RunState.CANCELLED, RunState.PENDING, RunState.PENDING,
    ]  # fmt: skip
    reason = read(world.ledger, fetch_run, "r2").reason
    assert reason == f"no worker for 30 s: waiting for its turn: run r1 is running{HINT}"


def test_a_run_whose_workers_are_gone_is_cancelled_in_the_middle(world: World) -> None:
    """Its time begins when the last of them is dead, not when it falls silent."""
    world.begin("r1", after_s=20.0)
    world.pass_time(5, "w1")
    world.pass_time(TIMEOUT_S + 19)
    assert world.states("r1") == [RunState.RUNNING]
    world.pass_time(2)
    assert world.states("r1") == [RunState.CANCELLED]
    assert read(world.ledger, fetch_run, "r1").reason == f"no worker for 20 s: {NOBODY}{HINT}"


def test_a_worker_that_comes_just_in_time_saves_the_run(world: World) -> None:
    """When that one dies, the time begins anew."""
    world.begin("r1", after_s=20.0)
    world.pass_time(TIMEOUT_S + 19)
    world.pass_time(1, "w2")
    world.pass_time(TIMEOUT_S + 19)
    assert world.states("r1") == [RunState.RUNNING]
    world.pass_time(3)
    assert world.states("r1") == [RunState.CANCELLED]


def test_only_a_worker_that_can_work_on_the_run_counts(world: World) -> None:
    """One that cannot begin with it does not."""
    world.begin("r1", after_s=20.0)
    world.pass_time(15, "w2")
    world.roster.record_refusal("w2", build_incarnation("w2"), ("r1", "no such file"), world.now)
    world.pass_time(19, "w2")
    assert world.states("r1") == [RunState.RUNNING]
    world.pass_time(1, "w2")
    reason = read(world.ledger, fetch_run, "r1").reason
    assert reason == f"no worker for 20 s: worker w2 gets no leases of this run: no such file{HINT}"


def test_a_worker_that_leaves_counts_as_long_as_it_has_something_in_hand(world: World) -> None:
    """It may take longer for its last requests than the run may be without workers."""
    world.begin("r1", after_s=5.0)
    world.look()
    lease = deal_lease(world.ledger, "r1", 10, world.now, worker="w1")
    world.pass_time(20, "w1", stopping=True, leases=held(lease.id))
    assert world.states("r1") == [RunState.RUNNING]
    world.pass_time(5, "w1", stopping=True)
    assert world.states("r1") == [RunState.CANCELLING]


def test_a_paused_run_may_rest_for_ever(world: World) -> None:
    """Its time begins anew when it is resumed."""
    world.submit("r1", 20.0)
    world.pass_time(19)
    world.runs.pause("r1")
    world.pass_time(100)
    assert world.states("r1") == [RunState.PAUSED]
    world.runs.resume("r1")
    world.look()
    world.pass_time(19)
    assert world.states("r1") == [RunState.PENDING]
    world.pass_time(1)
    assert world.states("r1") == [RunState.CANCELLED]


def test_time_in_which_nobody_could_be_heard_does_not_count(world: World) -> None:
    """Nor is a run judged before workers had time to be heard again, which they may have come meanwhile."""
    world.submit("r1", 40.0)
    world.submit("r2", 16.0)
    world.look()
    world.pass_time(15)
    world.miss(100.0)
    world.pass_time(TIMEOUT_S - 1)
    assert world.states("r1", "r2") == [RunState.PENDING, RunState.PENDING]
    world.pass_time(1)
    assert world.states("r1", "r2") == [RunState.PENDING, RunState.CANCELLED]
    world.pass_time(14)
    assert world.states("r1") == [RunState.PENDING]
    world.pass_time(1)
    assert world.states("r1") == [RunState.CANCELLED]


def test_short_outages_do_not_keep_a_run_for_ever(world: World) -> None:
    """The time between them counts."""
    world.submit("r1", 60.0)
    world.look()
    for _ in range(5):
        world.pass_time(TIMEOUT_S + 2)
        world.miss(3.0)
    world.pass_time(TIMEOUT_S)
    assert world.states("r1") == [RunState.CANCELLED]


def test_a_coordinator_that_was_restarted_counts_anew(world: World) -> None:
    """It does not know for how long there was no worker, nor judge before workers had time to be heard."""
    world.submit("r1", 3.0)
    world.pass_time(2)
    world.now += 100.0
    world.start_coordinator()
    world.look()
    world.pass_time(TIMEOUT_S - 1)
    assert world.states("r1") == [RunState.PENDING]
    world.pass_time(1)
    assert world.states("r1") == [RunState.CANCELLED]


def test_a_teardown_for_which_no_worker_is_there_is_given_up(world: World) -> None:
    """The run ends as it was to end; one that was given up itself does not wait as long a second time."""
    for run, requests in (("r1", 0), ("r2", 10)):
        world.begin(run, after_s=20.0, hooks=(Hook.SETUP, Hook.TEARDOWN))
        change(world.ledger, start_attempt, run, Hook.SETUP, "w1", "b1", world.now)
        report = HookReport(attempt=HookAttempt(run, Hook.SETUP, 1))
        batch = CheckpointBatch(worker="w1", incarnation="b1", checkpoints=[], hooks=[report])
        apply_batches(world.ledger, [batch], now=world.now)
        if not requests:
            change(world.ledger, change_state, run, RunState.FAILED, world.now, "it is over")
            assert world.states(run) == [RunState.TEARING_DOWN]
        world.look()
        world.pass_time(TIMEOUT_S + 22)
    ended = [read(world.ledger, fetch_run, run) for run in ("r1", "r2")]
    late = "teardown was given up: no worker for 20 s"
    assert [(run.state, run.reason) for run in ended] == [
        (RunState.FAILED, f"it is over; {late}"),
        (RunState.CANCELLED, f"no worker for 20 s: {NOBODY}{HINT}; {late}"),
    ]
