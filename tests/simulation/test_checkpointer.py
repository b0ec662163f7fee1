"""When checkpoints are sent, on a simulated clock."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.simulation.machine.clocks import MachineClock
from tests.simulation.machine.process import Process
from tests.simulation.machine.scheduler import Scheduler

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.process.supervision import Health
from oku_workers.leases.checkpointer import Checkpointer

_BATCH = CheckpointBatch(worker="w", incarnation="i", checkpoints=[])


class _Worker:
    """Has one thing to say, and repeats it until it is confirmed."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        clock = MachineClock(lambda: self.scheduler.now)
        self.process = Process("w", self.scheduler, clock, lambda _, error, __: pytest.fail(repr(error)))
        self.sent: list[float] = []
        self.has_news = True
        self.is_confirmed = False
        self.checkpointer = Checkpointer(self, self)
        health = Health("checkpoints")
        self.process.enter(lambda: self.process.start(self.checkpointer.keep_sending(health)))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        over: list[bool] = []
        self.scheduler.after(seconds, lambda: over.append(True))
        self.scheduler.run_until(lambda: bool(over))

    async def send(self, batch: CheckpointBatch) -> None:  # noqa: ARG002  # there is only one
        """Note when."""
        await asyncio.sleep(0)
        self.sent.append(self.scheduler.now)

    def collect(self, *, is_repeat: bool) -> CheckpointBatch | None:
        """Build a message, if there is anything to say."""
        return _BATCH if self.has_news or (is_repeat and not self.is_confirmed) else None

    def on_sent(self, batch: CheckpointBatch) -> None:  # noqa: ARG002  # there is only one
        """It is no news any more."""
        self.has_news = False


@pytest.fixture
def worker() -> Iterator[_Worker]:
    """A worker on a simulated clock."""
    worker = _Worker()
    yield worker
    worker.process.bury()


def test_what_is_not_confirmed_is_repeated_for_ever(worker: _Worker) -> None:
    """Also when there is nothing new to say; at each interval at first, and once a minute after long."""
    worker.run(600.0)
    pauses = [later - earlier for earlier, later in pairwise(worker.sent)]
    assert max(pauses[:9]) <= worker.checkpointer.interval_s + 0.1
    assert 59.0 < max(pauses) <= 60.1
    assert worker.sent[-1] > 600.0 - 60.1


def test_what_is_confirmed_is_not_repeated(worker: _Worker) -> None:
    """A worker that has nothing to say is silent."""
    worker.run(5.0)
    worker.is_confirmed = True
    sent = len(worker.sent)
    worker.run(60.0)
    assert len(worker.sent) == sent
