"""The timing wheel: wakes thousands of waiters, each at its own time, with one timer of the event loop.

Waiters of the same millisecond share a bucket. A waiter is never woken early, and at most two milliseconds
late while the event loop keeps up: one for the bucket, one for the clock of the loop.
"""

from collections.abc import Callable
from typing import Protocol

TICKS_PER_S = 1000
LOOK_AHEAD = 32
"""With more buckets than this, the wheel looks for the next one only within this many ticks, then again."""

_ROUNDED_UP_S = 0.5 / TICKS_PER_S
_NEVER = float("inf")


class Waiter(Protocol):
    """Something that waits."""

    def wake(self) -> None:
        """The time has come."""


class TimerHandle(Protocol):
    """A timer that is set."""

    def cancel(self) -> None:
        """Forget it."""


class Timers(Protocol):
    """The event loop as far as its timers go, and the clock that they follow."""

    def monotonic(self) -> float:
        """Read a monotonic clock, in seconds."""

    def call_later(self, delay_s: float, callback: Callable[[], None], /) -> TimerHandle:
        """Call a function after this many seconds."""


class TimingWheel:
    """Buckets of waiters by the tick in which they are due."""

    def __init__(self, timers: Timers) -> None:
        self._call_later = timers.call_later
        self._clock = timers.monotonic
        self._buckets: dict[int, dict[Waiter, None]] = {}
        self._turned = 0
        self._timer: TimerHandle | None = None
        self._timer_tick = _NEVER

    def add(self, waiter: Waiter, delay_s: float) -> int:
        """Wake `waiter` once, after `delay_s` seconds; returns the tick, which `remove` needs."""
        tick = int((self._clock() + delay_s) * TICKS_PER_S) + 1
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket[waiter] = None
            return tick
        self._buckets[tick] = {waiter: None}
        if tick < self._timer_tick:
            self._set_timer(tick)
        return tick

    def remove(self, waiter: Waiter, tick: int) -> None:
        """Do not wake a waiter that was added for `tick`, if it is still waiting."""
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket.pop(waiter, None)
            if not bucket:
                del self._buckets[tick]

    def __len__(self) -> int:
        """How many are waiting."""
        return sum(map(len, self._buckets.values()))

    def _turn(self) -> None:
        now = self._now()
        due = [self._buckets.pop(tick) for tick in self._list_ticks(now)]
        self._turned = now
        self._timer, self._timer_tick = None, _NEVER
        if self._buckets:
            self._set_timer(self._find_next(now))
        for bucket in due:
            for waiter in bucket:
                waiter.wake()

    def _list_ticks(self, now: int) -> list[int]:
        """The ticks up to `now` that have a bucket, in order."""
        passed = range(self._turned + 1, now + 1)
        if len(passed) < len(self._buckets):
            return [tick for tick in passed if tick in self._buckets]
        return sorted(tick for tick in self._buckets if tick <= now)

    def _find_next(self, now: int) -> int:
        """The tick of the next bucket or an earlier one: another look costs less than looking everywhere."""
        if len(self._buckets) <= LOOK_AHEAD:
            return min(self._buckets)
        ahead = range(now + 1, now + LOOK_AHEAD)
        return next((tick for tick in ahead if tick in self._buckets), now + LOOK_AHEAD)

    def _set_timer(self, tick: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = tick
        # The event loop rounds to its own milliseconds, and a timer that comes too early must be set again.
        self._timer = self._call_later(tick / TICKS_PER_S - self._clock() + _ROUNDED_UP_S, self._turn)

    def _now(self) -> int:
        return int(self._clock() * TICKS_PER_S)
