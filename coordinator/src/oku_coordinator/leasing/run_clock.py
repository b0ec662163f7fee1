"""The clock of a run whose requests have due times, or that ends at a time.

A period of activity opens once the workers of the run are there. They follow the clock, so the period starts
a moment later, when all of them have leases. When the time of a closed run is over, nothing more is dealt,
and workers give back their remaining work. They know the end from their clocks; an order repeats it. They
send until then, so work is dealt until then, too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.lease_end import LeaseEnd
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.rules.leases import waves
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.tables import schedule_table
from oku_coordinator.watches.turn import Turn

_WAIT_S = 5.0
"""How long a run waits for workers to return, or to load the result of its setup."""
_WORKERS_PER_S = 500
"""The number of workers that get leases in a second."""


FindOffset = Callable[[float], float]
"""The offset of the run's clock in a new period, from its reading at the end of the previous one."""


@dataclass(kw_only=True)
class RunClock:
    """Opens the periods of one run.

    Args:
        ledger: stores them.
        turn: has the number of workers that the run still waits for.
    """

    ledger: Ledger
    turn: Turn
    _waits_since: float | None = field(default=None, init=False)
    """Since when the run has waited for workers, in Unix time."""

    def find_period(self, run: RunRecord) -> PeriodRecord | None:
        """The open period of a running run; None when it has none."""
        with self.ledger.read() as t:
            period = schedule_table.fetch_period(t, run.run)
        return period if period is not None and period.stop_s is None else None

    def open_period(
        self,
        run: RunRecord,
        now: float,
        *,
        workers: int,
        lead_s: float,
        find_offset_s: FindOffset = float,
    ) -> PeriodRecord | None:
        """Open a period for a running run that has none; None while it waits for workers.

        With a rate, seconds of its clock and of Unix time start together, so that the arrivals of each second
        can be compared with the schedule.

        Args:
            run: the run.
            now: Unix time.
            workers: how many can take leases.
            lead_s: how long after now it starts; longer with thousands of workers, or for a whole second.
            find_offset_s: by default the clock continues where it stopped.
        """
        if not workers or self._is_early(run, now):
            return None
        self._waits_since = None
        with self.ledger.read() as t:
            last = schedule_table.fetch_period(t, run.run)
        offset_s = 0.0 if last is None else find_offset_s(last.stop_s or 0.0)
        starts_at = now + lead_s + workers / _WORKERS_PER_S
        if run.spec.is_open:
            starts_at = math.ceil(starts_at - offset_s) + offset_s
        with self.ledger.change() as t:
            return waves.start_clock(t, run.run, starts_at, offset_s)

    def _is_early(self, run: RunRecord, now: float) -> bool:
        if self._waits_since is None:
            self._waits_since = now
        return self.turn.count_missing(run) > 0 and now - self._waits_since < _WAIT_S


_START_LEAD_S = 0.3
"""The delay from opening a period to its start."""
_STOP_AHEAD_S = 0.5
"""How long before the end workers get the order to stop."""


@dataclass(kw_only=True)
class TimeLimit:
    """The end of one closed run.

    Args:
        ledger: the truth.
        delivery: knows whether the broker is away.
        clock: the clock of the run.
        ender: stops its leases.
    """

    ledger: Ledger
    delivery: Delivery
    clock: RunClock
    ender: LeaseEnd

    def find_left_s(self, run: RunRecord, workers: int, now: float, wall_now: float) -> float:
        """For how many seconds a running run still sends; infinite without a time limit.

        Starts its clock if it has one and can, and stops its leases when its time is over.

        Args:
            run: the run.
            workers: how many can take leases of it.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        if not run.spec.has_clock:
            return math.inf
        period = self.clock.find_period(run)
        is_new = period is None
        if period is None and not self.delivery.is_away:  # else its first seconds would pass without a lease
            period = self.clock.open_period(run, wall_now, workers=workers, lead_s=_START_LEAD_S)
        if period is None:
            return 0.0
        if (length_s := run.spec.length_s) is None:  # its clock is only needed for the end of the warm-up
            return math.inf
        ends_at = period.build_period().unix_time(float(length_s))
        left_s = ends_at - wall_now
        # A new run is dealt once, however soon it ends.
        if left_s > _STOP_AHEAD_S or (is_new and ends_at > period.starts_at):
            return left_s
        self.ender.stop(run, now, ends_at)
        if left_s <= 0:
            with self.ledger.change(wall_now) as t:
                lifecycle.end_time(t, run.run, wall_now)
        return max(0.0, left_s)
