import pytest

from oku_coordinator.broker import Broker
from oku_coordinator.pace import Pacemaker, choose_pace_s


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders."""

    def __init__(self) -> None:
        self.paces: list[float] = []

    def send_pace(self, progress_every_s: float) -> None:
        """Take an order."""
        self.paces.append(progress_every_s)


@pytest.mark.parametrize(
    ("workers", "term_s", "pace_s"),
    [
        (0, 5.0, 1),
        (1, 5.0, 1),
        (1000, 5.0, 1),
        (1001, 5.0, 2),
        (4000, 5.0, 4),
        (10**6, 5.0, 4),
        (10**6, 0.5, 1),
    ],
)
def test_many_workers_speak_less_often(workers: int, term_s: float, pace_s: float) -> None:
    """A thousand each second, more of them in turn; nobody is silent for a term."""
    assert choose_pace_s(workers, term_s) == pace_s


async def test_the_pace_is_told_when_it_changes_and_once_in_a_term() -> None:
    """The order may be lost."""
    broker = BrokerTwin()
    pacemaker = Pacemaker(broker, 5.0)
    for workers, now in ((10, 0.0), (10, 1.0), (3000, 2.0), (3000, 3.0), (3000, 6.9), (3000, 7.0), (10, 8.0)):
        await pacemaker.step(workers, now)
    assert broker.paces == [1.0, 3.0, 3.0, 1.0]
