"""The timers of a worker, by the loop's own time; how precise the kernel's are is for a real loop to say."""

from collections.abc import Iterator

import pytest
from tests.kit.workers.simulated_loop import SimulatedLoop

from oku_workers.timing.timing import LoopTimer


class Wakes:
    """A timer in a loop whose time passes by itself, and when it called back."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.at: list[float] = []
        self.timer = LoopTimer(loop, lambda: self.at.append(loop.time()), lambda: round(loop.time() * 1e9))

    def arm(self, at_s: float) -> None:
        """Set the timer."""
        self.timer.arm(round(at_s * 1e9))

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()


@pytest.fixture
def wakes() -> Iterator[Wakes]:
    """A timer at 1000 s."""
    loop = SimulatedLoop()
    yield Wakes(loop)
    loop.close()


def test_it_calls_back_once_at_the_time_that_was_set(wakes: Wakes) -> None:
    """Not before, and not again."""
    wakes.arm(1001.5)
    wakes.pass_time(5.0)
    assert wakes.at == [pytest.approx(1001.5)]


def test_only_the_last_time_that_was_set_counts(wakes: Wakes) -> None:
    """Whether it is later or sooner than the one before."""
    for at_s in (1003.0, 1001.0, 1002.0):
        wakes.arm(at_s)
    wakes.pass_time(5.0)
    assert wakes.at == [pytest.approx(1002.0)]


def test_a_time_that_is_past_is_now(wakes: Wakes) -> None:
    """It is late already."""
    wakes.arm(900.0)
    wakes.pass_time(1.0)
    assert wakes.at == [pytest.approx(1000.0)]


@pytest.mark.parametrize("end", ["disarm", "close"])
def test_a_timer_that_was_disarmed_or_closed_does_not_call_back(wakes: Wakes, end: str) -> None:
    """Even if its time was set before."""
    wakes.arm(1001.0)
    getattr(wakes.timer, end)()
    wakes.pass_time(2.0)
    assert not wakes.at
