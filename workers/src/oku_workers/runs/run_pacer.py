"""Sets the pace of the runs in hand as time goes on: windows, phases, shares, and the end of a run's time.

An open run has only its window: the rest stands in the due times. A worker confirms a new division of a run
as soon as it has no more in flight than its share.
"""

import asyncio
import math
from typing import TYPE_CHECKING, Protocol

from oku_core.messaging.share import HeldShare, Settled, Share
from oku_core.process.clock import SteadyClock
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.spec import Spec
from oku_workers.runs.engine_slot import EngineSlot
from oku_workers.runs.run_pace import RunPace, RunTime, build_time_plan, find_connections, find_window

if TYPE_CHECKING:
    from oku_workers.timing.timing import WakeTimer

_NS_PER_S = 1_000_000_000
_MOST_RUNS = 4
_NO_SHARE = HeldShare()
_RAMP_S = 0.05
"""How often a changing concurrency is followed."""


class RunEnder(Protocol):
    """Stops a run."""

    def end_run(self, run: str) -> None:
        """The time of a run is over."""


class RunPacer:
    """Sets windows, phases and shares, and ends runs; belongs to the thread of the event loop.

    Args:
        slot: carries the runs out.
        clock: Unix time, as long as the coordinator's clock is not known.
        ender: stops a run when its time is over, before anything more of it is taken.
    """

    def __init__(self, slot: EngineSlot, clock: SteadyClock, ender: RunEnder) -> None:
        self._slot = slot
        self._clock = clock
        self._ender = ender
        self._shares: dict[str, HeldShare] = {}
        """The shares of the latest runs."""
        self._settled: dict[str, int] = {}
        """The newest division that this worker has settled on, of the same runs."""
        self._specs: dict[str, Spec] = {}
        """The runs, the newest last."""
        self._times: dict[str, RunTime] = {}
        """The times of the closed runs that have a period."""
        self._timer: WakeTimer | None = None

    def start_run(self, run: str, spec: Spec, period: ActivePeriod | None) -> None:
        """Leases of a run have come.

        Args:
            run: the run.
            spec: its spec.
            period: when the clock of the run goes; None if it has none.
        """
        self._specs.pop(run, None)
        self._specs[run] = spec
        while len(self._specs) > _MOST_RUNS:
            oldest = next(iter(self._specs))
            del self._specs[oldest]
            self._times.pop(oldest, None)
        known = self._times.get(run)
        # A message from before a pause may come late; the clock of a run never goes back.
        if spec.is_open:
            period = None  # due times have it
        if period is not None and (known is None or period.offset_s >= known.period.offset_s):
            self._times[run] = RunTime(build_time_plan(spec), period)
        self.update()

    def share(self, share: Share) -> None:
        """Follow this worker's share of a run, as assigned by the coordinator."""
        held = self._shares.get(share.run, _NO_SHARE)
        if (followed := held.follow(share)) == held:
            return
        self._shares[share.run] = followed
        while len(self._shares) > _MOST_RUNS:
            oldest = next(iter(self._shares))
            del self._shares[oldest]
            self._settled.pop(oldest, None)
        self.update()

    def settle(self) -> bool:
        """Settle on new divisions if no more is in flight than the share; returns whether any is awaited."""
        new = {run: held for run, held in self._shares.items() if held.number != self._settled.get(run)}
        if not new or not self._slot.keeps_window:
            return False
        self._settled |= {run: held.number for run, held in new.items()}
        return not all(held.is_alone for held in new.values())

    @property
    def settled(self) -> list[Settled]:
        """The newest division that this worker has settled on, of each run whose share it has."""
        return [Settled(run, number) for run, number in self._settled.items()]

    def is_over(self, run: str) -> bool:
        """Whether the time of a run is over, so that nothing of it is taken any more."""
        time = self._times.get(run)
        return time is not None and time.measure_s(self.read_now()) >= time.plan.end_s

    def update(self) -> None:
        """Set the current pace, and plan the next update."""
        now = self.read_now()
        next_at = math.inf
        newest = {spec: run for run, spec in self._specs.items()}  # runs may have the same spec
        for spec, run in newest.items():
            time = self._times.get(run)
            if time is None:
                phase = "" if spec.is_open else build_time_plan(spec).phases[-1].name
                share = self._shares.get(run, _NO_SHARE)
                self._set_pace(run, spec, find_window(spec, share), phase)
                continue
            if self.is_over(run):
                self._ender.end_run(run)
            else:
                next_at = min(next_at, self._pace(run, time, now))
        if next_at < math.inf:
            self._arm(next_at - now)

    def follow_clock(self) -> None:
        """Update after each sample: the coordinator's clock may have become known, or be another one."""
        if self._times:
            self.update()

    def close(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.close()

    def _set_pace(self, run: str, spec: Spec, window: int, phase: str) -> None:
        share = self._shares.get(run, _NO_SHARE)
        self._slot.set_pace(spec, RunPace(window, phase, share.place, find_connections(spec, share)))

    def _pace(self, run: str, time: RunTime, now: float) -> float:
        """Set the pace of a run whose time is not over; returns when to update again, in Unix time."""
        plan, time_s = time.plan, time.measure_s(now)
        window = plan.find_concurrency(time_s, self._shares.get(run, _NO_SHARE))
        self._set_pace(run, plan.spec, window, plan.find_phase(time_s))
        next_at = time.find_next_change(now)
        return next_at if plan.stages is None else min(next_at, now + _RAMP_S)

    def _arm(self, wait_s: float) -> None:
        timing = self._slot.timing
        if self._timer is None:
            self._timer = timing.build_timer(asyncio.get_running_loop(), self.update)
        self._timer.arm(timing.monotonic_ns() + max(0, math.ceil(wait_s * _NS_PER_S)))

    def read_now(self) -> float:
        """Unix time by the coordinator's clock, or by ours as long as that is not known."""
        clock = self._slot.timing.coordinator_clock
        return clock.now() if clock.is_known else self._clock.now()
