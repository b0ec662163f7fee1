from tests.kit.coordinators.broker_twin import BrokerTwin

from oku_coordinator.workers.intervals import IntervalAnnouncer


def test_the_intervals_are_announced_when_one_changes_and_again_after_a_while() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    for heartbeat_s, checkpoint_s, now in (
        (1.0, 3.0, 0.0),
        (1.0, 3.0, 1.0),
        (3.0, 3.0, 2.0),
        (3.0, 5.0, 3.0),
        (3.0, 5.0, 7.9),
        (3.0, 5.0, 8.0),
    ):
        announcer.step(heartbeat_s, checkpoint_s, now)
    assert broker.intervals_s == [(1.0, 3.0), (3.0, 3.0), (3.0, 5.0), (3.0, 5.0)]


def test_the_intervals_are_announced_when_a_broker_that_was_away_is_back() -> None:
    """The order goes out at once."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    for answers, now in ((False, 0.0), (False, 0.5), (True, 1.0), (True, 2.0)):
        broker.answers = answers
        announcer.step(1.0, 3.0, now)
    assert broker.intervals_s == [(1.0, 3.0)]


def test_the_intervals_are_announced_again_to_those_who_listen_only_now() -> None:
    """The next step announces them, whenever they were announced before."""
    broker = BrokerTwin()
    announcer = IntervalAnnouncer(broker)
    announcer.step(1.0, 3.0, 0.0)
    announcer.repeat()
    announcer.step(1.0, 3.0, 0.1)
    announcer.step(1.0, 3.0, 0.2)
    assert broker.intervals_s == [(1.0, 3.0)] * 2
