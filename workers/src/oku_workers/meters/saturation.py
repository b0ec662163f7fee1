"""Finds the requests that ended while their worker was short of processor time, or its event loop was late.

Whole seconds with requests in flight all the time are judged: a burst of 0.1 s, start-up and idle time do not
affect a latency. docs/metrics.md gives the reasons for the two limits.

A scheduled call shows how late an event loop is: it runs only when the loop is free.
"""

import asyncio
import math
import time
from collections.abc import Collection
from typing import NamedTuple, Protocol

from oku_core.process.clock import Clock
from oku_core.process.resources import measure_busy_s
from oku_workers.executions.execution import Execution

SATURATED_SHARE = 0.9
"""From this share of a second on, spent on a processor or waiting for one, requests queue in the worker."""
LATE_S = 0.1
"""A latency that an event loop measures while it is later than this is its own rather than the target's."""
_WHOLE_S = 1.0


class LagListener(Protocol):
    """Samples something as often as a `LagMeter` measures."""

    def sample(self, late_s: float) -> None:
        """The event loop was this late, in seconds."""


class LagMeter:
    """Asks the event loop for a call every 50 ms, and measures by how much each one comes too late."""

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


class _Strain(NamedTuple):
    busy_share: float
    late_s: float


_NOTHING_KNOWN = _Strain(0.0, 0.0)


class SaturationMeter:
    """Judges the requests that ended in each whole second, by a sample every 50 ms.

    Args:
        measure_busy_s: time that the worker ran or waited for a processor.
    """

    def __init__(
        self,
        measure_busy_s: Clock = measure_busy_s,
        clock: Clock = time.monotonic,
    ) -> None:
        self._measure_busy_s = measure_busy_s
        self._clock = clock
        self._since: float | None = None
        self._busy_s = self._worst_late_s = 0.0
        self._last: dict[str, _Strain] = {}
        """Of the last whole second of each run that is under way."""
        self._runs: set[str] = set()
        """Those that were under way when the second began."""

    def sample(self, executions: Collection[Execution], late_s: float) -> None:
        """Sample the executions in hand, in an event loop that was this late."""
        if not any(execution.in_flight for execution in executions):
            self._since, self._last = None, {}
            return
        now, runs = self._clock(), {execution.lease.run for execution in executions}
        self._worst_late_s = max(self._worst_late_s, late_s)
        if self._since is not None and runs <= self._runs:
            if now - self._since < _WHOLE_S:
                return
            share = (self._measure_busy_s() - self._busy_s) / (now - self._since)
            self._last = dict.fromkeys(runs, _Strain(min(share, 1.0), self._worst_late_s))
        # Otherwise a second begins: one that began with another run does not apply to this one.
        for execution in executions:
            self.record_end(execution)
        self._runs = runs
        # Answers that came while the loop was late are read after this look; they suffered from it, too.
        self._since, self._busy_s, self._worst_late_s = now, self._measure_busy_s(), late_s

    def record_end(self, execution: Execution) -> None:
        """Judge what an ended execution had after its last whole second as that second was judged."""
        _count(execution, self._last.get(execution.lease.run, _NOTHING_KNOWN))


def _count(execution: Execution, strain: _Strain) -> None:
    covered = execution.ended - len(execution.given_back)
    new, execution.judged = covered - execution.judged, covered
    if not new:
        return
    execution.max_busy_share = max(execution.max_busy_share, strain.busy_share)
    if strain.busy_share >= SATURATED_SHARE:
        execution.saturated += new
    if strain.late_s >= LATE_S:
        execution.lagged += new
        # A short lease may have begun after the loop was late.
        execution.max_lag_s = max(execution.max_lag_s, strain.late_s)
