import pytest

from oku_workers.health.watchdogs import EXIT_STUCK, IdleWatchdog


class Worker:
    """A worker that is watched; `exits` are the codes with which its process was ended."""

    def __init__(self) -> None:
        self.exits: list[int] = []
        self.watchdog = IdleWatchdog(30.0, self.exits.append)
        self.watchdog.record_message()
        self.look(0.0, waiting=0)

    def look(self, now: float, waiting: int = 2) -> bool:
        """Whether one look ends it."""
        before = len(self.exits)
        self.watchdog.check(waiting, now)
        return len(self.exits) > before


@pytest.fixture
def worker() -> Worker:
    """One that has just started."""
    return Worker()


def test_a_worker_that_hears_nothing_beside_waiting_messages_is_stuck(worker: Worker) -> None:
    """It must be deaf at every look from the first to the last, whatever it is doing."""
    assert [worker.look(now) for now in (100.0, 115.0, 129.9, 130.0)] == [False, False, False, True]
    assert worker.exits == [EXIT_STUCK]


@pytest.mark.parametrize(("hears", "waiting"), [(True, 2), (False, 0), (True, 0)])
def test_a_message_that_arrives_or_empty_queues_reset_the_watchdog(
    worker: Worker, *, hears: bool, waiting: int
) -> None:
    """A worker that is slow, or for which nothing waits, is not stuck."""
    worker.look(100.0)
    if hears:
        worker.watchdog.record_message()
    assert not worker.look(200.0, waiting)
    assert [worker.look(now) for now in (201.0, 230.9, 231.0)] == [False, False, True]


def test_time_without_a_broker_does_not_count(worker: Worker) -> None:
    """No message could arrive in it."""
    worker.look(100.0)
    worker.watchdog.reset()
    assert not worker.look(200.0)
