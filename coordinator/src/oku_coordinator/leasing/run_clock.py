"""The clock of the run that has its turn, if its requests have due times or it ends at a time.

A period of activity opens once the workers that the run asks for are there. Their clocks tell when it starts,
so it starts a moment ahead: everybody has leases by then.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import waves
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.schedule_records import PeriodRecord
from oku_coordinator.ledger.tables import period_table

_WAIT_S = 5.0
"""How long a run waits for workers to come back, or to load the result of its setup."""
_WORKERS_PER_S = 500
"""So many get leases in a second."""


@dataclass(kw_only=True)
class RunClock:
    """Opens periods and reads them.

    Args:
        ledger: keeps them.
        count_missing: how many workers a run still waits for; those that it began without are not among them.
    """

    ledger: Ledger
    count_missing: Callable[[RunRecord], int]
    _waits: tuple[str, float] | None = field(default=None, init=False)
    """The run that waits for workers, and since when."""

    def find_period(self, run: RunRecord) -> PeriodRecord | None:
        """The open period of a running run; None when it has none."""
        with self.ledger.read() as t:
            period = period_table.fetch_period(t, run.run)
        return period if period is not None and period.stop_s is None else None

    def open_period(
        self,
        run: RunRecord,
        now: float,
        *,
        workers: int,
        lead_s: float,
        find_offset_s: Callable[[float], float] = lambda stop_s: stop_s,
    ) -> PeriodRecord | None:
        """Open a period for a running run that has none; None while it waits for workers.

        With a rate, seconds of its clock and of Unix time begin together, so that the arrivals of each second
        of the series can be compared with the schedule.

        Args:
            run: the run.
            now: Unix time.
            workers: how many can take leases.
            lead_s: how long after now it starts; longer with thousands of workers, or for a whole second.
            find_offset_s: what the clock is to say, out of what it said when the period before ended.
        """
        if not workers or self._is_early(run, now):
            return None
        self._waits = None
        with self.ledger.read() as t:
            last = period_table.fetch_period(t, run.run)
        offset_s = 0.0 if last is None else find_offset_s(last.stop_s or 0.0)
        starts_at = now + lead_s + workers / _WORKERS_PER_S
        if run.spec.is_open:
            starts_at = math.ceil(starts_at - offset_s) + offset_s
        with self.ledger.change() as t:
            return waves.open_period(t, run.run, starts_at, offset_s)

    def _is_early(self, run: RunRecord, now: float) -> bool:
        if self._waits is None or self._waits[0] != run.run:
            self._waits = (run.run, now)
        return self.count_missing(run) > 0 and now - self._waits[1] < _WAIT_S
