"""What a worker needs to be on time."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from oku_core.process.clock import ClockNs
from oku_workers.timing.coordinator_clock import CoordinatorClock
from oku_workers.timing.precise_timer import PreciseTimer


class WakeTimer(Protocol):
    """Calls back at a time of the monotonic clock."""

    def arm(self, at_ns: int) -> None:
        """Call back once, at this time in nanoseconds or as soon as possible, and at no other."""
        ...

    def disarm(self) -> None:
        """Do not call back."""
        ...

    def close(self) -> None:
        """Never call back again."""
        ...


BuildTimer = Callable[[asyncio.AbstractEventLoop, Callable[[], object]], WakeTimer]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The clocks of a worker and its timers; a simulation has its own.

    Args:
        coordinator_clock: what schedules count by.
        monotonic_ns: the clock of timers, in nanoseconds.
        build_timer: makes a timer of an event loop that calls a function.
    """

    coordinator_clock: CoordinatorClock = field(default_factory=CoordinatorClock)
    monotonic_ns: ClockNs = time.monotonic_ns
    build_timer: BuildTimer = PreciseTimer
