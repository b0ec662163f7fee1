"""How late the event loop of a worker is: what it does at a certain time, it may do only when it is free."""

import asyncio
import math
import time
from typing import Protocol

from oku_core.process.clock import Clock


class LagListener(Protocol):
    """Samples something as often as a `LagMeter` measures."""

    def sample(self, late_s: float) -> None:
        """The event loop was this late, in seconds."""


class LagMeter:
    """Asks the event loop for a call every 50 ms, and measures by how much each one comes too late.

    Args:
        clock: monotonic time in seconds.
        interval_s: how often to ask.
    """

    def __init__(self, clock: Clock = time.monotonic, interval_s: float = 0.05) -> None:
        self._listener: LagListener | None = None
        self._clock = clock
        self._interval_s = interval_s
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf

    def start(self, listener: LagListener) -> None:
        """Begin, in the running event loop; the listener learns each lateness."""
        self._listener = listener
        self._ask()

    def _ask(self) -> None:
        self._due = self._clock() + self._interval_s
        self._handle = asyncio.get_running_loop().call_later(self._interval_s, self._take_call)

    def stop(self) -> None:
        """End."""
        if self._handle is not None:
            self._handle.cancel()
        self._due = math.inf

    @property
    def late_s(self) -> float:
        """How late the next call is by now."""
        return max(0.0, self._clock() - self._due)

    def _take_call(self) -> None:
        assert self._listener is not None
        self._listener.sample(self.late_s)
        self._ask()
