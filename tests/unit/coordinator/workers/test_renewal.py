from typing import Any

from tests.kit.coordinators.broker_twin import BrokerTwin

from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.renewal import Renewal
from oku_core.messaging.order import Control
from oku_core.messaging.progress import Progress


class World:
    """Two workers that the test lets speak."""

    def __init__(self) -> None:
        self.broker = BrokerTwin()
        self.roster = Roster(10.0)
        self.renewal = Renewal(roster=self.roster, broker=self.broker)

    def speak(self, worker: str, **changes: Any) -> None:
        """A worker says something of itself."""
        progress = Progress(worker=worker, incarnation=f"{worker}1", at=0.0, **changes)
        self.roster.record(progress, 0.0, 0.0)

    def look(self, turn: str, now: float) -> list[Control]:
        """What is told then."""
        before = len(self.broker.controls)
        self.renewal.renew_used(turn, now)
        return self.broker.controls[before:]


def test_those_that_have_run_user_code_are_told_when_its_run_is_over() -> None:
    """At once, whether or not another run has its turn; nobody is told while the run goes on."""
    for following in ("", "r2"):
        world = World()
        world.speak("a", code_run="r1")
        world.speak("b")
        assert [world.look("r1", now) for now in (0.0, 1.5, 2.0)] == [[], [], []]
        assert world.look(following, 2.1) == [Control(incarnation="a1", renew=True)]


def test_they_are_told_again_until_they_leave() -> None:
    """The order may be lost; one that is leaving has heard it."""
    world = World()
    world.speak("a", code_run="r1")
    told = [bool(world.look("r2", now)) for now in (0.0, 0.5, 1.0, 1.5, 2.0)]
    assert told == [True, False, True, False, True]
    world.speak("a", code_run="r1", stopping=True)
    assert world.look("r2", 3.0) == []


def test_one_that_is_heard_late_is_told_too() -> None:
    """As after a restart of the coordinator."""
    world = World()
    assert world.look("r2", 0.0) == []
    world.speak("a", code_run="r1")
    assert world.look("r2", 1.0) == [Control(incarnation="a1", renew=True)]
