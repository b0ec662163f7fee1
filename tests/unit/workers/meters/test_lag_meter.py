import asyncio

import pytest

from oku_workers.meters.saturation import LagMeter


class Clock:
    """A monotonic clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lateness_s: list[float] = []

    def sample(self, late_s: float) -> None:
        """Keep it."""
        self.lateness_s.append(late_s)


async def let_the_loop_call() -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_meter_that_does_not_run_measures_nothing() -> None:
    """There is no lateness before the start."""
    assert LagMeter(clock=Clock()).late_s == 0.0
    # Lateness is the time after a call was due. The meter tells each one.
    clock = Clock()
    listener = Listener()
    meter = LagMeter(clock, interval_s=0.0)
    meter.start(listener)
    for seconds in (0.0, 0.3, 0.01):
        clock.now += seconds
        await let_the_loop_call()
    assert [late_s for late_s in listener.lateness_s if late_s] == pytest.approx([0.3, 0.01])
    meter.stop()


async def test_a_loop_that_has_not_called_for_a_while_is_late() -> None:
    """Its lateness counts before its next call comes."""
    clock = Clock()
    meter = LagMeter(clock=clock, interval_s=0.05)
    meter.start(Listener())
    clock.now += 2.05
    assert meter.late_s == pytest.approx(2.0)
    meter.stop()
    assert meter.late_s == 0.0


async def test_the_event_loop_calls_by_itself_until_the_end() -> None:
    """The meter asks again after each call."""
    clock = Clock()
    listener = Listener()
    meter = LagMeter(clock, interval_s=0.0)
    meter.start(listener)
    await let_the_loop_call()
    assert len(listener.lateness_s) > 1
    meter.stop()
    listener.lateness_s.clear()
    await let_the_loop_call()
    assert listener.lateness_s == []
