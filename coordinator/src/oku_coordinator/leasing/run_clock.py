"""The clock of a run, if its requests have due times or it ends at a time.

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
from oku_coordinator.ledger.tables import schedule_table
from oku_coordinator.runs.turn import Turn

_WAIT_S = 5.0
"""How long a run waits for workers to come back, or to load the result of its setup."""
_WORKERS_PER_S = 500
"""So many get leases in a second."""


FindOffset = Callable[[float], float]
"""What the clock of a run is to say in a new period, out of what it said when the one before ended."""


@dataclass(kw_only=True)
class RunClock:
    """Opens the periods of one run, and reads them.

    Args:
        ledger: keeps them.
        turn: says how many workers the run still waits for.
    """

    ledger: Ledger
    turn: Turn
    _waits_since: float | None = field(default=None, init=False)
    """Since when the run waits for workers, in Unix time."""

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

        With a rate, seconds of its clock and of Unix time begin together, so that the arrivals of each second
        of the series can be compared with the schedule.

        Args:
            run: the run.
            now: Unix time.
            workers: how many can take leases.
            lead_s: how long after now it starts; longer with thousands of workers, or for a whole second.
            find_offset_s: by default the clock goes on where it stopped.
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
            return waves.open_period(t, run.run, starts_at, offset_s)

    def _is_early(self, run: RunRecord, now: float) -> bool:
        if self._waits_since is None:
            self._waits_since = now
        return self.turn.count_missing(run) > 0 and now - self._waits_since < _WAIT_S
