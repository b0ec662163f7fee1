import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.client import Time

from oku_server.behaviour.timing_wheel import LOOK_AHEAD, TimingWheel


class Sleeper:
    """A waiter that records when it is woken."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self.woken_at: list[float] = []

    def wake(self) -> None:
        """Record the time."""
        self.woken_at.append(self._time.now_s)


@given(st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 0.01)), max_size=30))
def test_each_waiter_is_woken_once_neither_early_nor_late(waits: list[tuple[float, float]]) -> None:
    """A waiter is woken after its delay, and at most two milliseconds late."""
    time = Time()
    wheel = TimingWheel(time)
    sleepers: list[tuple[Sleeper, float]] = []
    for delay_s, pause_s in waits:
        sleepers.append((Sleeper(time), time.now_s + delay_s))
        wheel.add(sleepers[-1][0], delay_s)
        time.pass_s(pause_s, 0.0001)
    assert len(time.timers) <= 1
    time.pass_s(0.21, 0.0001)
    for sleeper, due_s in sleepers:
        (woken_s,) = sleeper.woken_at
        assert due_s <= woken_s <= due_s + 0.0022
    assert len(wheel) == 0


@pytest.mark.parametrize("first_s", [0.01, 10.0])
def test_a_wheel_goes_on_after_it_was_empty(first_s: float) -> None:
    """The wheel wakes a new waiter whatever it waited for before."""
    time = Time()
    wheel = TimingWheel(time)
    gone, sleeper = Sleeper(time), Sleeper(time)
    wheel.remove(gone, wheel.add(gone, first_s))
    time.pass_s(5.0, 0.1)
    due_s = time.now_s + 0.05
    wheel.add(sleeper, 0.05)
    time.pass_s(0.1)
    assert due_s <= sleeper.woken_at[0] <= due_s + 0.0025


@pytest.mark.parametrize("waiters", [1, LOOK_AHEAD, LOOK_AHEAD + 1, 1000])
def test_a_long_wait_needs_few_looks(waiters: int) -> None:
    """While nothing is due, the wheel looks once in so many ticks, or not at all."""
    time = Time()
    wheel = TimingWheel(time)
    sleepers = [Sleeper(time) for _ in range(waiters)]
    for number, sleeper in enumerate([Sleeper(time), *sleepers]):
        wheel.add(sleeper, 0.001 if number == 0 else 2.0 + number / 1000)
    looks = 0
    for _ in range(1000):
        before = list(time.timers)
        time.pass_s(0.001)
        looks += time.timers != before
    assert looks <= 1 + (1000 / LOOK_AHEAD + 1) * (waiters > LOOK_AHEAD)
    time.pass_s(3.0, step_s=2.9)
    assert [len(sleeper.woken_at) for sleeper in sleepers] == [1] * waiters
    assert time.timers == []


def test_a_waiter_that_is_removed_is_not_woken() -> None:
    """The others in its bucket are woken, and an empty wheel sets no timer."""
    time = Time()
    wheel = TimingWheel(time)
    one, other = Sleeper(time), Sleeper(time)
    tick = wheel.add(one, 0.01)
    assert wheel.add(other, 0.01) == tick
    wheel.remove(one, tick)
    assert len(wheel) == 1
    time.pass_s(0.02)
    assert (len(one.woken_at), len(other.woken_at)) == (0, 1)
    wheel.remove(other, tick)
    assert time.timers == []
    assert len(wheel) == 0
    # Whoever waits again when woken is woken again.
    time = Time()
    wheel = TimingWheel(time)

    class Restless(Sleeper):
        def wake(self) -> None:
            super().wake()
            wheel.add(self, 0.0)

    restless = Restless(time)
    wheel.add(restless, 0.0)
    time.pass_s(0.1)
    assert 40 <= len(restless.woken_at) <= 101
