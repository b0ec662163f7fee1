"""What a worker measures of the runs that it works on: their rates, and whether the window was full."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import ref

from oku_workers.executions.execution import Execution
from oku_workers.executions.open_lease import OpenLease
from oku_workers.meters.run_meter import RunMeter, WindowMeter
from oku_workers.runs.engine_slot import EngineSlot

_MOST_RUNS = 4
_SAMPLE_S = 0.05
_AWAY_S = 8.0
"""How long a coordinator may be away."""


@dataclass
class _Run:
    """One run, with its changes since the last sample."""

    rate: RunMeter
    window: WindowMeter
    is_open: bool
    """Whether a window that is not full is as it should be."""
    taken: int = 0
    ended: int = 0
    in_flight: int = 0
    last: "ref[OpenLease] | None" = None
    """The lease that requests were last taken from; it may be gone by now."""


class RunWatch:
    """Samples the leases in hand, some twenty times a second.

    Args:
        slot: the engine at work, with its feed and window.

    Attributes:
        newest: the run that an index was last taken of; empty before the first.
    """

    def __init__(self, slot: EngineSlot) -> None:
        self._slot = slot
        self._runs: dict[str, _Run] = {}
        self.newest = ""
        self._sampled_at = math.inf

    def sample(self, now: float, leases: Mapping[Execution, OpenLease]) -> bool:
        """Sample the changes; returns whether the first index of a run was taken.

        Args:
            now: monotonic seconds.
            leases: those in hand.
        """
        has_begun = False
        # What is new since the last sample has begun after it.
        begun_at, self._sampled_at = max(min(self._sampled_at, now), now - _SAMPLE_S), now
        for run in self._runs.values():
            run.taken = run.ended = run.in_flight = 0
        for execution, lease in leases.items():
            taken, ended = execution.taken, execution.ended
            if taken != ended or taken != lease.sampled_taken or ended != lease.sampled_ended:
                has_begun = has_begun or lease.run not in self._runs
                run = self._find_run(lease, now, begun_at)
                run.taken += taken - lease.sampled_taken
                run.ended += ended - lease.sampled_ended
                run.in_flight += taken - ended
                lease.sampled_taken, lease.sampled_ended = taken, ended
        feed, window = self._slot.feed, self._slot.window
        first, current = feed.find_first(), feed.current
        for name, run in self._runs.items():
            has_untaken = first is not None and first.lease.run == name
            if has_untaken and first is not None and first in leases:
                run.last = ref(leases[first])
            has_work = has_untaken and (current is not None or feed.is_paced)
            run.rate.sample(now, window, run.taken, run.ended, run.in_flight, has_work=has_work)
            if run.taken:
                self.newest = name
            run.window.sample(
                now, window, self._count_filled(run, window), run.ended, has_untaken=has_untaken
            )
            if run.last is not None and not run.is_open:
                watched_s, underfilled_s = run.window.drain()
                if (last := run.last()) is not None:
                    last.watched_s += watched_s
                    last.underfilled_s += underfilled_s
        return has_begun

    def _count_filled(self, run: _Run, window: int) -> int:
        """How much of the window is in flight, or is not for another reason than that there is no work.

        Such a reason is a highest rate, or the time that users take between two iterations.
        """
        feed, load = self._slot.feed, self._slot.host_load
        if feed.is_paced and not feed.lacks_work:
            return window
        return run.in_flight if load is None else max(0, window - load.idle_users)

    def find_meter(self, name: str) -> RunMeter | None:
        """The measurements of a run; None if there are none, or none of late."""
        run = self._runs.get(name)
        return run.rate if run else None

    def find_reserve(self) -> float:
        """How many indices bridge the absence of a coordinator, at the rate of the run that is next."""
        first = self._slot.feed.find_first()
        meter = self.find_meter(first.lease.run) if first is not None else None
        return _AWAY_S * meter.rate_rps if meter and meter.rate_rps > 0 else math.inf

    def stop(self, name: str) -> None:
        """A run was stopped: nothing of it is to be taken."""
        if name in self._runs:
            self._runs[name].window.stop()

    def _find_run(self, lease: OpenLease, now: float, begun_at: float) -> _Run:
        name, spec = lease.run, lease.execution.spec
        if name not in self._runs:
            needs_answers = spec.max_rate is None and not spec.runs_user_code
            meter = WindowMeter(now, needs_answers=needs_answers)
            self._runs[name] = _Run(RunMeter(begun_at), meter, spec.is_open)
            while len(self._runs) > _MOST_RUNS:
                del self._runs[next(iter(self._runs))]
        return self._runs[name]
