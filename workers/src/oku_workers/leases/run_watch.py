"""What a worker measures of the runs that it works on: their rates, and whether the window was full."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ref

from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.meters.run_meter import RunMeter
from oku_workers.meters.window_meter import WindowMeter
from oku_workers.runs.engine_switch import EngineSwitch

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_RUNS = 4
_AWAY_S = 8.0
"""For so long a coordinator may be away."""


@dataclass
class _Run:
    """One run, with what is new of it since the last look."""

    rate: RunMeter
    window: WindowMeter
    is_open: bool
    """Whether a window that is not full is as it should be."""
    taken: int = 0
    ended: int = 0
    in_flight: int = 0
    last: "ref[OpenLease] | None" = None
    """The lease that requests were last taken from; it may be gone by now."""


def _ignore() -> None:
    """Nobody wants to know."""


class RunWatch:
    """Looks at the leases in hand, some twenty times a second.

    Args:
        engines: say what comes next, and how many requests may be in flight.

    Attributes:
        on_begin: called when the first index of a run is about to be taken.
        newest: the run that an index was last taken of; empty before the first.
    """

    def __init__(self, engines: EngineSwitch) -> None:
        self._engines = engines
        self._runs: dict[str, _Run] = {}
        self.on_begin: Callable[[], None] = _ignore
        self.newest = ""

    def look(self, now: float, leases: dict[Execution, OpenLease]) -> None:
        """Take note of what is new; `now` is in monotonic seconds."""
        for run in self._runs.values():
            run.taken = run.ended = run.in_flight = 0
        for execution, lease in leases.items():
            taken, ended = execution.taken, execution.ended
            if taken != ended or taken != lease.looked_taken or ended != lease.looked_ended:
                run = self._find_run(lease, now)
                run.taken += taken - lease.looked_taken
                run.ended += ended - lease.looked_ended
                run.in_flight += taken - ended
                lease.looked_taken, lease.looked_ended = taken, ended
        feed, window = self._engines.feed, self._engines.window
        first, current = feed.find_first(), feed.current
        for name, run in self._runs.items():
            has_untaken = first is not None and first.lease.run == name
            if has_untaken and first is not None and first in leases:
                run.last = ref(leases[first])
            has_work = has_untaken and (current is not None or feed.is_paced)
            run.rate.look(now, window, run.taken, run.ended, run.in_flight, has_work=has_work)
            if run.taken:
                self.newest = name
            run.window.look(now, window, self._count_filled(run, window), run.ended, has_untaken=has_untaken)
            if run.last is not None and not run.is_open:
                watched_s, underfilled_s = run.window.take()
                if (last := run.last()) is not None:
                    last.watched_s += watched_s
                    last.underfilled_s += underfilled_s

    def _count_filled(self, run: _Run, window: int) -> int:
        """How much of the window is in flight, or is not for another reason than that there is no work.

        Such a reason is a highest rate, or the time that users take between two iterations.
        """
        feed, load = self._engines.feed, self._engines.host_load
        if feed.is_paced and not feed.lacks_work:
            return window
        return run.in_flight if load is None else max(0, window - load.idle_users)

    def find_meter(self, name: str) -> RunMeter | None:
        """What was measured of a run; None if nothing was, or not of late."""
        run = self._runs.get(name)
        return run.rate if run else None

    def find_enough(self) -> float:
        """How many indices bridge the absence of a coordinator, at the rate of the run that is next."""
        first = self._engines.feed.find_first()
        meter = self.find_meter(first.lease.run) if first is not None else None
        return _AWAY_S * meter.rate_rps if meter and meter.rate_rps > 0 else math.inf

    def stop(self, name: str) -> None:
        """A run was stopped: nothing of it is to be taken."""
        if name in self._runs:
            self._runs[name].window.stop()

    def _find_run(self, lease: OpenLease, now: float) -> _Run:
        name, spec = lease.run, lease.execution.spec
        if name not in self._runs:
            needs_answers = spec.max_rate is None and not spec.runs_user_code
            meter = WindowMeter(now, needs_answers=needs_answers)
            self._runs[name] = _Run(RunMeter(now), meter, spec.is_open)
            while len(self._runs) > _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            self.on_begin()
        return self._runs[name]
