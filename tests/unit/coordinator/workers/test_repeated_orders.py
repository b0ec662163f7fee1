from pathlib import Path
from typing import Any

from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_file_access

from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer, Renewal
from oku_core.messaging.order import ClockNotice, Control
from oku_core.messaging.progress import Progress
from oku_core.process.clock import SteadyClock

CLOCK = ClockNotice(kernel="boot", offset_ns=1)


class ClockStoreTwin(ClockStore):
    """Gives one notice after the other, the last one again and again."""

    def __init__(self, *notices: ClockNotice) -> None:
        super().__init__(SteadyClock(), Path("nowhere"), "boot")
        self._notices = list(notices)

    def describe(self) -> ClockNotice:
        """The next notice."""
        return self._notices.pop(0) if len(self._notices) > 1 else self._notices[0]


def build_announcer(broker: BrokerTwin, *notices: ClockNotice) -> IntervalAnnouncer:
    """Build an announcer of a clock of which these are told."""
    return IntervalAnnouncer(broker, ClockStoreTwin(*notices), build_file_access())


def test_the_intervals_are_announced_when_one_changes_and_again_after_a_while() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    announcer = build_announcer(broker, CLOCK)
    for heartbeat_s, checkpoint_s, now in (
        (1.0, 3.0, 0.0),
        (1.0, 3.0, 1.0),
        (3.0, 3.0, 2.0),
        (3.0, 5.0, 3.0),
        (3.0, 5.0, 7.9),
        (3.0, 5.0, 8.0),
    ):
        announcer.announce(heartbeat_s, checkpoint_s, now)
    assert broker.intervals_s == [(1.0, 3.0), (3.0, 3.0), (3.0, 5.0), (3.0, 5.0)]


def test_the_intervals_are_announced_when_a_broker_that_was_away_is_back() -> None:
    """The order goes out at once."""
    broker = BrokerTwin()
    announcer = build_announcer(broker, CLOCK)
    for answers, now in ((False, 0.0), (False, 0.5), (True, 1.0), (True, 2.0)):
        broker.answers = answers
        announcer.announce(1.0, 3.0, now)
    assert broker.intervals_s == [(1.0, 3.0)]


def test_the_intervals_are_announced_again_to_those_who_listen_only_now() -> None:
    """The next step announces them, whenever they were announced before."""
    broker = BrokerTwin()
    announcer = build_announcer(broker, CLOCK)
    announcer.announce(1.0, 3.0, 0.0)
    announcer.repeat()
    announcer.announce(1.0, 3.0, 0.1)
    announcer.announce(1.0, 3.0, 0.2)
    assert broker.intervals_s == [(1.0, 3.0)] * 2


def test_workers_hear_of_a_new_clock_at_once() -> None:
    """As soon as the coordinator goes by another one."""
    broker = BrokerTwin()
    clocks = [ClockNotice(kernel="boot", offset_ns=number) for number in (1, 2, 2, 3)]
    told = iter(clocks)
    announcer = build_announcer(broker, *told)
    for now in range(len(clocks)):
        announcer.announce(1.0, 3.0, now)
    assert broker.clocks == [clocks[0], clocks[1], clocks[3]]


def test_workers_hear_at_once_which_run_has_its_turn() -> None:
    """And that none has it any more: they log what they have done of it."""
    broker = BrokerTwin()
    announcer = build_announcer(broker, CLOCK)
    for now, run in enumerate(("", "r1", "r1", "", "r2")):
        announcer.announce(1.0, 3.0, now, run)
    assert broker.turns == ["", "r1", "", "r2"]


def test_one_who_has_just_come_need_not_wait_for_long() -> None:
    """What time it is, for example, is announced at once, and again: it may not have listened yet."""
    broker = BrokerTwin()
    announcer = build_announcer(broker, CLOCK)
    announcer.announce(1.0, 3.0, 0.0)
    announcer.repeat_soon()
    told = []
    for now in (0.2, 0.4, 1.1, 1.2, 2.2, 6.1, 6.2):
        announcer.announce(1.0, 3.0, now)
        told.append(len(broker.intervals_s) - 1)
    assert told == [1, 1, 1, 2, 2, 2, 3]


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
