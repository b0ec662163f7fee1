from oku_coordinator.broker import Broker
from oku_coordinator.pace import Pacemaker


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders."""

    def __init__(self) -> None:
        self.paces: list[float] = []

    def send_pace(self, progress_every_s: float) -> None:
        """Take an order."""
        self.paces.append(progress_every_s)


async def test_the_pace_is_told_when_it_changes_and_again_after_a_while() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    pacemaker = Pacemaker(broker)
    for pace_s, now in ((1.0, 0.0), (1.0, 1.0), (3.0, 2.0), (3.0, 3.0), (3.0, 6.9), (3.0, 7.0), (1.0, 8.0)):
        await pacemaker.step(pace_s, now)
    assert broker.paces == [1.0, 3.0, 3.0, 1.0]
