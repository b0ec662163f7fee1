import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.history import fetch_history
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.run_table import fetch_current_run
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.watches.turn import Turn
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress
from oku_core.results.event import EventType
from oku_core.spec.spec import Spec
from oku_core.summary.validity import Flag

NOBODY = "waiting for a worker to connect"


class ServersTwin:
    """Delay servers that may not be there."""

    def __init__(self) -> None:
        self.are_there = True

    def may_start(self, _: RunRecord) -> bool:
        """Whether they are there."""
        return self.are_there


class World:
    """A queue, and a watch that gives a run a minute."""

    def __init__(self, ledger: Ledger, *expected: str) -> None:
        self.ledger = ledger
        self.roster = Roster(10.0)
        self.servers = ServersTwin()
        self.wall_now = 100.0
        self.assignment = Assignment(ledger=ledger, roster=self.roster)
        self.turn: tuple[str, Turn] | None = None
        self.readiness = Readiness(
            ledger,
            self.roster,
            self.assignment,
            server_watch=self.servers,  # type: ignore[arg-type]  # a twin
            expected_workers=expected,
        )

    def submit(self, run: str, **keys: float) -> None:
        """Submit a run."""
        change(self.ledger, create_run, run, Spec(**keys), self.wall_now)  # type: ignore[arg-type]  # counts and times
        self.wall_now += 1.0

    def connect(self, *workers: str) -> None:
        """Workers say that they are here."""
        for worker in workers:
            self.roster.record(Progress(worker=worker, incarnation=worker, at=0.0), 0.0, 0.0)
        self.assignment.settle(read(self.ledger, fetch_current_run))

    def look(self, now: float) -> str:
        """Look once; gives the run that has its turn afterwards."""
        self.wall_now += 1.0
        self.assignment.settle(read(self.ledger, fetch_current_run))
        run = self.fetch_current()
        self.find_turn(run).expire(run, now)
        return self.fetch_current().run

    def begins(self, now: float) -> bool:
        """Whether the run that has its turn begins at this time."""
        self.wall_now += 1.0
        run = self.fetch_current()
        return self.find_turn(run).start(run, now, self.wall_now) is not None

    def find_turn(self, run: RunRecord) -> Turn:
        """The turn of the run that has it now; a run that gets another turn begins anew."""
        if self.turn is None or self.turn[0] != run.run:
            self.turn = run.run, Turn(self.ledger, self.readiness, 60.0, lambda: self.wall_now)
        return self.turn[1]

    def fetch_current(self) -> RunRecord:
        """The run that has its turn."""
        run = read(self.ledger, fetch_current_run)
        assert run is not None
        return run


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world with one pending run."""
    world = World(ledger)
    world.submit("r1")
    return world


def test_a_run_that_nobody_can_begin_with_gives_its_turn_to_the_next(world: World) -> None:
    """It goes to the end of the queue, says why, and gets another turn."""
    for run in ("r2", "r3"):
        world.submit(run)
    turns = [world.look(now) for now in (0.0, 59.9, 60.0, 61.0, 121.0, 122.0, 182.0)]
    assert turns == ["r1", "r1", "r2", "r2", "r3", "r3", "r1"]
    event = read(world.ledger, fetch_history, "r1").events[-1]
    assert event.type == EventType.TURN_GIVEN
    assert event.text == f"the run passes its turn to the next: {event.reason}"
    assert event.reason == f"it did not start within 60.0 s: {NOBODY}"


def test_alone_it_goes_on_waiting(world: World) -> None:
    """It gives its turn away as soon as another run waits."""
    assert [world.look(now) for now in (0.0, 1000.0)] == ["r1", "r1"]
    world.submit("r2")
    assert world.look(1001.0) == "r2"


def test_time_in_which_nobody_could_come_does_not_count(world: World) -> None:
    """There was no broker, or the coordinator stood still."""
    world.submit("r2")
    world.look(0.0)
    world.find_turn(world.fetch_current()).reset_timers(50.0)
    assert [world.look(now) for now in (109.0, 110.0)] == ["r1", "r2"]


def test_a_run_that_was_cancelled_meanwhile_is_left_alone(world: World) -> None:
    """It is not in the queue any more."""
    change(world.ledger, change_state, "r1", RunState.CANCELLED, 1.0)
    change(world.ledger, lifecycle.requeue, "r1", 2.0, "a reason")
    assert read(world.ledger, fetch_history, "r1").events[-1].type == EventType.STATE


def test_a_run_that_asks_for_no_number_begins_with_the_first_worker(world: World) -> None:
    """Nothing is missing, so nothing is said."""
    assert not world.begins(0.0)
    world.connect("w1")
    assert world.begins(0.5)
    assert world.fetch_current().state == RunState.RUNNING
    assert [event.type for event in read(world.ledger, fetch_history, "r1").events] == [EventType.STATE] * 2
    assert read(world.ledger, fetch_snapshot, "r1").flags == []


def test_after_its_time_a_run_begins_with_those_that_are_there(ledger: Ledger) -> None:
    """The history and the summary say how many are missing, and who, where that is known."""
    world = World(ledger, "w1", "w2", "w3")
    world.submit("r1")
    world.submit("r2")
    world.connect("w1", "w3")
    assert not any(world.begins(now) for now in (0.0, 59.9))
    assert world.look(60.0) == "r1"
    assert world.begins(60.0)
    assert read(ledger, fetch_snapshot, "r1").flags == [(Flag.WORKERS_MISSING, 0, 1.0)]
    event = read(ledger, fetch_history, "r1").events[-1]
    assert event.type == EventType.WORKERS_MISSING
    assert event.text == f"the run starts with {event.reason}"
    assert event.reason == "2 of 3 workers: w2 is missing, after it has waited for 60.0 s"


def test_a_turn_lasts_a_second_at_least(ledger: Ledger) -> None:
    """Runs that do not want to wait would give their turns to each other in every round."""
    world = World(ledger)
    for run in ("r1", "r2"):
        world.submit(run, start_within_s=0.0)
    assert [world.look(now) for now in (0.0, 0.5, 1.0)] == ["r1", "r1", "r2"]


def test_delay_servers_are_looked_at_when_the_workers_are_there(ledger: Ledger) -> None:
    """That takes a moment, for which the run keeps its turn."""
    world = World(ledger)
    world.submit("r1", workers=2)
    world.submit("r2")
    world.connect("w1")
    world.servers.are_there = False
    assert not world.begins(0.0)
    assert not world.begins(60.0)
    assert [world.look(now) for now in (60.0, 64.9, 65.0)] == ["r1", "r1", "r2"]
