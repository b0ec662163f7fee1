import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from oku_core.messaging.process_ends import FlightRecord
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Health
from oku_workers.flight.flight_recorder import NoRecorder
from oku_workers.health.heartbeat import Heartbeat
from oku_workers.health.watchdogs import EXIT_STUCK, IdleWatchdog


class TransportError(Exception):
    """What a transport raises that nobody has heard of."""


class FakeChannel:
    """A connection, and what makes it; the test says what fails."""

    def __init__(self) -> None:
        self.sent: list[Progress] = []
        self.connects = 0
        self.waiting = 0
        self.before_send: Callable[[], None] = lambda: None

    def open(self) -> AbstractContextManager["FakeChannel"]:
        """As a transport."""
        self.connects += 1
        return nullcontext(self)

    def send(self, progress: Progress) -> None:
        """As a channel."""
        self.sent.append(progress)
        self.before_send()

    def count_waiting(self) -> int:
        """As a channel."""
        return self.waiting


class FakeLoopThread:
    """Does at once what it is asked, or is too busy."""

    def __init__(self) -> None:
        self.is_busy = False

    def ask(self, call: Callable[[], Any], timeout_s: float) -> Any:
        """As the loop thread."""
        assert timeout_s > 0
        if self.is_busy:
            raise TimeoutError
        return call()


class FakeRunner:
    """Has no lease."""

    incarnation = "b1"

    def __init__(self) -> None:
        self.recorder = FakeRecorder()

    def build_progress(self, *, coarse: bool, found: Sequence[FlightRecord]) -> Progress:
        """As the lease runner."""
        self.is_coarse = coarse
        return Progress(worker="w1", incarnation="b1", at=1.7e9, found=list(found))


class FakeRecorder(NoRecorder):
    """There is a record of a dead process."""

    def find_dead(self) -> list[FlightRecord]:
        """As that of a worker."""
        return [FlightRecord(incarnation="dead")]


class Stage:
    """A heartbeat that runs in the test's own thread, without waiting."""

    def __init__(self, idle_limit_s: float = 30.0) -> None:
        self.channel, self.loop_thread, self.runner = FakeChannel(), FakeLoopThread(), FakeRunner()
        self.exits: list[int] = []
        runner: Any = self.runner
        self.is_hearing = False
        watchdog = SharpWatchdog(self, idle_limit_s)
        health = Health("heartbeat", 0.0)
        parts: Any = (self.channel.open, health, self.loop_thread, runner, watchdog, 0.0)
        self.heartbeat = Heartbeat(*parts)

    def exit(self, code: int) -> None:
        """Stands for the end of the process."""
        self.exits.append(code)
        self.heartbeat.end()

    def run(self, times: int) -> None:
        """Send progress so often, and once more for the end."""

        def end_in_time() -> None:
            if len(self.channel.sent) >= times:
                self.heartbeat.end()

        self.channel.before_send = end_in_time
        self.heartbeat.run()


class SharpWatchdog(IdleWatchdog):
    """A message arrives before each check while its stage is hearing."""

    def __init__(self, stage: Stage, limit_s: float) -> None:
        super().__init__(limit_s, stage.exit)
        self._stage = stage

    def check(self, waiting: int, now: float) -> None:
        """As that of a worker."""
        if self._stage.is_hearing:
            self.record_message()
        super().check(waiting, now)


def test_progress_is_sent_again_and_again() -> None:
    """All over one connection, and a last time at the end."""
    stage = Stage()
    stage.run(times=3)
    found = [FlightRecord(incarnation="dead")]
    assert [(progress.worker, progress.found) for progress in stage.channel.sent] == [("w1", found)] * 4
    assert stage.channel.connects == 1


@pytest.mark.parametrize("error", [OSError(), TransportError(), RuntimeError()])
def test_no_loss_of_the_broker_silences_it(error: Exception) -> None:
    """A worker that is silent counts as dead, so it goes on whatever a transport raises."""
    stage = Stage()

    def fail() -> None:
        if len(stage.channel.sent) < 3:
            raise error
        stage.heartbeat.end()

    stage.channel.before_send = fail
    stage.heartbeat.run()
    assert len(stage.channel.sent) == 4
    assert stage.channel.connects == 3


def test_a_stuck_worker_ends_itself_and_no_other() -> None:
    """No event goes out then, and the worker counts as dead."""
    stage = Stage(idle_limit_s=0.0)
    stage.loop_thread.is_busy = True
    stage.channel.waiting = 1
    stage.heartbeat.run()
    assert stage.channel.sent == []
    # A stuck worker ends itself. Its exit code is the reason for the process that starts it again.
    stage = Stage(idle_limit_s=0.0)
    stage.channel.waiting = 1
    stage.run(times=1000)
    assert stage.exits == [EXIT_STUCK]
    # A worker that nothing waits for stays.
    stage = Stage(idle_limit_s=0.0)
    stage.run(times=20)
    assert stage.exits == []
    # A worker that hears stays. There may be always something that waits for it.
    stage = Stage(idle_limit_s=0.0)
    stage.is_hearing = True
    stage.channel.waiting = 6
    stage.run(times=20)
    assert stage.exits == []


def test_how_often_a_heartbeat_speaks() -> None:
    """Workers speak less often where there are many of them."""
    stage = Stage()
    stage.run(times=1)
    assert not stage.runner.is_coarse
    stage = Stage()
    stage.heartbeat.set_interval(0.001)
    stage.run(times=1)
    assert stage.runner.is_coarse
    for told_s, interval_s in [(3.0, 3.0), (0.0, 0.0), (1e9, 60.0), (-1.0, 0.0)]:
        # The interval is the coordinators within bounds.
        stage = Stage()
        stage.heartbeat.set_interval(told_s)
        assert stage.heartbeat.interval_s == interval_s
    # A heartbeat that is hurried does not wait for its time. The next one is due an interval later.
    stage = Stage()
    stage.heartbeat.set_interval(60.0)
    began = time.monotonic()

    def hurry_then_end() -> None:
        if len(stage.channel.sent) < 3:
            stage.heartbeat.send_now()
        else:
            stage.heartbeat.end()

    stage.channel.before_send = hurry_then_end
    stage.heartbeat.run()
    assert len(stage.channel.sent) == 4
    assert time.monotonic() - began < 50
