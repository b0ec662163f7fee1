"""Ends closed runs whose time is over: nothing more is dealt, and workers give back what they have not taken.

Workers know the end by their clocks; they are told all the same, in case they don't. They send until then, so
they are dealt work until then, too.
"""

import math
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.run_clock import RunClock
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import lifecycle
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table

_LEAD_S = 0.3
"""A period starts so long after it was opened."""
_STOP_AHEAD_S = 0.5
"""Workers are told of the end so long before it."""
_STOP_EVERY_S = 1.0


@dataclass(kw_only=True)
class TimeLimit:
    """The end of one closed run.

    Args:
        ledger: the truth.
        delivery: takes orders to workers.
        clock: the clock of the run.
    """

    ledger: Ledger
    delivery: Delivery
    clock: RunClock
    _stopped_at: float = field(default=-math.inf, init=False)

    def find_left_s(self, run: RunRecord, workers: int, now: float, wall_now: float) -> float:
        """For how many seconds a running run still sends; infinite if no time ends it.

        Its clock begins to run if it has one and can, and its leases are stopped when its time is over.

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
            period = self.clock.open_period(run, wall_now, workers=workers, lead_s=_LEAD_S)
        if period is None:
            return 0.0
        if (length_s := run.spec.length_s) is None:  # its clock only tells when its warm-up ends
            return math.inf
        ends_at = period.build_period().unix_time(float(length_s))
        left_s = ends_at - wall_now
        # What has just begun is dealt once, however soon it ends.
        if left_s > _STOP_AHEAD_S or (is_new and ends_at > period.starts_at):
            return left_s
        self._stop(run, ends_at, now)
        if left_s <= 0:
            with self.ledger.change(wall_now) as t:
                lifecycle.end_time(t, run.run, wall_now)
        return max(0.0, left_s)

    def _stop(self, run: RunRecord, ends_at: float, now: float) -> None:
        """Orders may be lost, so they are repeated until nothing is out."""
        if now - self._stopped_at < _STOP_EVERY_S:
            return
        self._stopped_at = now
        with self.ledger.read() as t:
            out = lease_table.fetch_open_leases(t, run.run)
        if out:
            self.delivery.stop(run, out, ends_at)
