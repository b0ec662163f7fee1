from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_coordinator.broker.sender import Broker
from oku_coordinator.workers.heartbeat_interval import Pacemaker
from oku_core.messaging.celery_app import build_app


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders."""

    def __init__(self) -> None:
        self.answers = True
        super().__init__(build_app("memory://", MESSAGE_KEY), lambda: self.answers)
        self.paces: list[float] = []

    def send_pace(self, progress_every_s: float) -> None:
        """Take an order."""
        self.paces.append(progress_every_s)


def test_the_pace_is_told_when_it_changes_and_again_after_a_while() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    pacemaker = Pacemaker(broker)
    for heartbeat_interval_s, now in (
        (1.0, 0.0),
        (1.0, 1.0),
        (3.0, 2.0),
        (3.0, 3.0),
        (3.0, 6.9),
        (3.0, 7.0),
        (1.0, 8.0),
    ):
        pacemaker.step(heartbeat_interval_s, now)
    assert broker.paces == [1.0, 3.0, 3.0, 1.0]


def test_a_broker_that_is_away_is_told_the_pace_when_it_is_back() -> None:
    """At once."""
    broker = BrokerTwin()
    pacemaker = Pacemaker(broker)
    for answers, now in ((False, 0.0), (False, 0.5), (True, 1.0), (True, 2.0)):
        broker.answers = answers
        pacemaker.step(1.0, now)
    assert broker.paces == [1.0]
