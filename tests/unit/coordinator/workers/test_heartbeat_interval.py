from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_coordinator.broker.sender import Broker
from oku_coordinator.workers.heartbeat_interval import IntervalAnnouncer
from oku_core.messaging.celery_app import build_app


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders."""

    def __init__(self) -> None:
        self.answers = True
        super().__init__(build_app("memory://", MESSAGE_KEY), lambda: self.answers)
        self.intervals_s: list[float] = []

    def send_heartbeat_interval(self, interval_s: float) -> None:
        """Take an order."""
        self.intervals_s.append(interval_s)


def test_the_interval_is_announced_when_it_changes_and_again_after_a_while() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    for heartbeat_interval_s, now in (
        (1.0, 0.0),
        (1.0, 1.0),
        (3.0, 2.0),
        (3.0, 3.0),
        (3.0, 6.9),
        (3.0, 7.0),
        (1.0, 8.0),
    ):
        announcer.step(heartbeat_interval_s, now)
    assert broker.intervals_s == [1.0, 3.0, 3.0, 1.0]


def test_the_interval_is_announced_when_a_broker_that_was_away_is_back() -> None:
    """The order goes out at once."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    for answers, now in ((False, 0.0), (False, 0.5), (True, 1.0), (True, 2.0)):
        broker.answers = answers
        announcer.step(1.0, now)
    assert broker.intervals_s == [1.0]


def test_the_interval_is_announced_again_to_those_who_listen_only_now() -> None:
    """The next step announces it, whenever it was announced before."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    announcer.step(1.0, 0.0)
    announcer.repeat()
    announcer.step(1.0, 0.1)
    announcer.step(1.0, 0.2)
    assert broker.intervals_s == [1.0, 1.0]
