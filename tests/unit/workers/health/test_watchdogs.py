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


def test_when_a_worker_is_stuck() -> None:
    """It must be deaf at every look from the first to the last, whatever it is doing."""
    worker = Worker()
    assert [worker.look(now) for now in (100.0, 115.0, 129.9, 130.0)] == [False, False, False, True]
    assert worker.exits == [EXIT_STUCK]
    for hears, waiting in [(True, 2), (False, 0), (True, 0)]:
        # A message that arrives or empty queues reset the watchdog.
        worker = Worker()
        worker.look(100.0)
        if hears:
            worker.watchdog.record_message()
        assert not worker.look(200.0, waiting)
        assert [worker.look(now) for now in (201.0, 230.9, 231.0)] == [False, False, True]
    # Time without a broker does not count. No message could arrive in it.
    worker = Worker()
    worker.look(100.0)
    worker.watchdog.reset()
    assert not worker.look(200.0)
