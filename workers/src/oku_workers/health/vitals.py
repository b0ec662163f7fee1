"""What a worker measures of itself: how busy it is, and lateness of its event loop."""

import asyncio
import math
import time
from collections.abc import Callable
from pathlib import Path
from time import monotonic

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Nanoseconds on a processor, nanoseconds waiting for one, turns (Linux, scheduler/sched-stats)."""


def measure_busy_s() -> float:
    """Time that this process ran on a processor, or the calling thread waited for one, in seconds.

    A worker whose requests queue because others take the processors is as saturated as one that uses up its
    own. Systems that do not tell of waiting count as if there were none.
    """
    try:
        waited_s = int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        waited_s = 0.0
    return time.process_time() + waited_s


class LagMeter:
    """Asks the event loop for a call every 50 ms and keeps by how much the latest one came too late.

    Args:
        on_call: takes by how much each one came too late.
    """

    _INTERVAL_S = 0.05

    def __init__(self, on_call: Callable[[float], None] = lambda _: None) -> None:
        self._on_call = on_call
        self._worst_s = 0.0
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._due = monotonic() + self._INTERVAL_S
        self._handle = asyncio.get_running_loop().call_later(self._INTERVAL_S, self._tick)

    def stop(self) -> None:
        """End."""
        if self._handle is not None:
            self._handle.cancel()
        self._due = math.inf

    @property
    def worst_s(self) -> float:
        """The largest lateness since the last call of `take_worst_s`."""
        # A loop that has not called for a while is late now, too.
        return max(0.0, self._worst_s, monotonic() - self._due)

    def take_worst_s(self) -> float:
        """The largest lateness since the last call of this."""
        worst_s = self.worst_s
        self._worst_s = 0.0
        return worst_s

    def _tick(self) -> None:
        late_s = max(0.0, monotonic() - self._due)
        self._worst_s = max(self._worst_s, late_s)
        self._on_call(late_s)
        self.start()
