import pytest

from oku_coordinator.ledger import Ledger
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_core.accounting.run_state import RunState
from oku_core.results.event import EventType
from oku_core.spec.spec import Spec


class World:
    """A queue, and a watch that gives a run a minute; what it waits for is known."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.obstacle = "waiting for a worker to connect"
        self.wall_now = 100.0
        self.watch = QueueWatch(ledger, 60.0, lambda _: self.obstacle, lambda: self.wall_now)

    def submit(self, run: str) -> None:
        """Submit a run."""
        self.ledger.runs.create(run, Spec(), self.wall_now)
        self.wall_now += 1.0

    def look(self, now: float) -> str:
        """Look once; gives the run that has its turn afterwards."""
        self.wall_now += 1.0
        self.watch.look(now)
        run = self.ledger.runs.fetch_current()
        assert run is not None
        return run.run


@pytest.fixture
def world(ledger: Ledger) -> World:
    """A world with one pending run."""
    world = World(ledger)
    world.submit("r1")
    return world


def test_a_run_that_cannot_begin_gives_its_turn_to_the_next(world: World) -> None:
    """It goes to the end of the queue, says why, and gets another turn."""
    for run in ("r2", "r3"):
        world.submit(run)
    turns = [world.look(now) for now in (0.0, 59.9, 60.0, 61.0, 121.0, 122.0, 182.0)]
    assert turns == ["r1", "r1", "r2", "r2", "r3", "r3", "r1"]
    event = world.ledger.history.fetch("r1").events[-1]
    assert event.type == EventType.TURN_GIVEN
    assert event.text == f"the run gives its turn to the next: {event.reason}"
    assert event.reason == "it has not begun within 60.0 s: waiting for a worker to connect"


def test_alone_it_goes_on_waiting(world: World) -> None:
    """It gives its turn away as soon as another run waits."""
    assert [world.look(now) for now in (0.0, 1000.0)] == ["r1", "r1"]
    world.submit("r2")
    assert world.look(1001.0) == "r2"


def test_time_in_which_nobody_could_come_does_not_count(world: World) -> None:
    """There was no broker, or the coordinator stood still."""
    world.submit("r2")
    world.look(0.0)
    world.watch.reset_timers(50.0)
    assert [world.look(now) for now in (109.0, 110.0)] == ["r1", "r2"]


def test_a_run_that_has_begun_keeps_its_turn(world: World) -> None:
    """It keeps it however slow it is."""
    world.submit("r2")
    world.look(0.0)
    world.ledger.runs.change_state("r1", RunState.RUNNING, 1.0)
    assert [world.look(now) for now in (100.0, 1000.0)] == ["r1", "r1"]


def test_a_run_that_was_cancelled_meanwhile_is_left_alone(world: World) -> None:
    """It is not in the queue any more."""
    world.ledger.runs.change_state("r1", RunState.CANCELLED, 1.0)
    world.ledger.runs.requeue("r1", 2.0, "a reason")
    assert world.ledger.history.fetch("r1").events[-1].type == EventType.STATE
