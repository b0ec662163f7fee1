import asyncio
import time
from pathlib import Path

import pytest

from oku_workers.health import vitals
from oku_workers.health.vitals import LagMeter, measure_busy_s


class Clock:
    """A monotonic clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the meter."""
    clock = Clock()
    monkeypatch.setattr(vitals, "monotonic", clock)
    return clock


def test_a_meter_that_does_not_run_measures_nothing(clock: Clock) -> None:
    """There is no lateness before the start."""
    assert LagMeter().take_worst_s() == 0.0


async def test_lateness_is_the_time_after_a_call_was_due(clock: Clock) -> None:
    """The largest since it was last asked for."""
    meter = LagMeter()
    meter.start()
    for seconds in (0.05, 0.35, 0.06):
        clock.now += seconds
        meter._tick()
    assert meter.worst_s == pytest.approx(0.3)
    assert meter.take_worst_s() == pytest.approx(0.3)
    assert meter.take_worst_s() == 0.0
    meter.stop()


async def test_a_loop_that_has_not_called_for_a_while_is_late(clock: Clock) -> None:
    """Also before the call comes."""
    meter = LagMeter()
    meter.start()
    clock.now += 2.05
    assert meter.take_worst_s() == pytest.approx(2.0)
    meter.stop()
    assert meter.take_worst_s() == 0.0


async def test_the_event_loop_calls_by_itself(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, until the end."""
    monkeypatch.setattr(LagMeter, "_INTERVAL_S", 0.0)
    meter = LagMeter()
    meter.start()
    clock.now += 1.0
    for _ in range(5):
        await asyncio.sleep(0)
    clock.now += 0.5
    assert meter.take_worst_s() == pytest.approx(1.0)
    meter.stop()


def test_busy_is_what_ran_and_what_waited(monkeypatch: pytest.MonkeyPatch, no_waiting: Path) -> None:
    """In seconds; a system that does not tell of waiting knows of none."""
    monkeypatch.setattr(time, "process_time", lambda: 2.0)
    assert measure_busy_s() == 2.0
    no_waiting.write_text("1000000000 250000000 7\n")
    assert measure_busy_s() == 2.25
    no_waiting.write_text("")
    assert measure_busy_s() == 2.0


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this system does not tell")
def test_the_system_tells_of_waiting() -> None:
    """In a form that is understood: waiting only grows."""
    first = measure_busy_s()
    assert 0 < time.process_time() <= first <= measure_busy_s()
