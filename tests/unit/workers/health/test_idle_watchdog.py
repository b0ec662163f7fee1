from types import SimpleNamespace
from typing import Any

import pytest

from oku_workers.health import EXIT_STUCK
from oku_workers.health.idle_watchdog import IdleWatchdog


class Worker:
    """A worker that is watched; `exits` are the codes with which its process was ended."""

    def __init__(self) -> None:
        self.exits: list[int] = []
        self.runner = SimpleNamespace(lease_ids=[], refused=set(), is_stopping=False)
        runner: Any = self.runner
        self.watchdog = IdleWatchdog(runner, 30.0, self.exits.append)

    def look(self, now: float, waiting: int = 2) -> bool:
        """Whether one look ends it."""
        before = len(self.exits)
        self.watchdog.look(waiting, now)
        return len(self.exits) > before


@pytest.fixture
def worker() -> Worker:
    """One that has just started."""
    return Worker()


def test_a_worker_that_idles_beside_waiting_leases_for_too_long_is_stuck(worker: Worker) -> None:
    """It must be idle at every look from the first to the last."""
    assert [worker.look(now) for now in (100.0, 115.0, 129.9, 130.0)] == [False, False, False, True]
    assert worker.exits == [EXIT_STUCK]


BUSY = [{"lease_ids": ["l1"]}, {"refused": {"l1"}}, {"is_stopping": True}]


@pytest.mark.parametrize(("state", "waiting"), [*((state, 2) for state in BUSY), ({}, 0), (BUSY[0], 0)])
def test_a_lease_under_way_or_an_empty_queue_resets_the_watchdog(
    worker: Worker, state: dict[str, Any], waiting: int
) -> None:
    """A worker that is busy, about to leave, or has nothing to take is not stuck."""
    worker.look(100.0)
    before = dict(vars(worker.runner))
    vars(worker.runner).update(state)
    assert not worker.look(200.0, waiting)
    vars(worker.runner).update(before)
    assert [worker.look(now) for now in (201.0, 230.9, 231.0)] == [False, False, True]


def test_time_without_a_broker_does_not_count(worker: Worker) -> None:
    """No lease could arrive in it."""
    worker.look(100.0)
    worker.watchdog.reset()
    assert not worker.look(200.0)
