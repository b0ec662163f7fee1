"""Has the run that has its turn begun, dealt out, and called back.

One call of `step` does what there is to do now; the main loop calls it when something has changed and at
least twice a second.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.farewell import Farewell
from oku_coordinator.leasing.hook_gate import HookGate
from oku_coordinator.leasing.range_dealer import RangeDealer
from oku_coordinator.leasing.waves.wave_dealer import WaveDealer
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table, period_table, run_table
from oku_coordinator.workers.assignment import Assignment
from oku_core.accounting.run_state import RunState

_STOP_EVERY_S = 1.0


@dataclass(kw_only=True)
class Dispatcher:
    """Has runs begun, deals them out and calls their leases back.

    Args:
        ledger: the truth.
        assignment: gives the run its workers.
        delivery: takes orders to workers.
        ranges: deals out closed runs.
        waves: deals out open runs.
        hooks: have the setup called before anything is dealt, and the teardown when nothing is out.
        begin: begins a pending run at monotonic seconds and Unix time, if it can; else it gives None.
    """

    ledger: Ledger
    assignment: Assignment
    delivery: Delivery
    ranges: RangeDealer
    waves: WaveDealer
    hooks: HookGate
    begin: Callable[[RunRecord, float, float], RunRecord | None]
    _stopped_at: float = field(default=-math.inf, init=False)
    _farewell: Farewell = field(init=False)

    def __post_init__(self) -> None:
        """Make what ends the last leases."""
        self._farewell = Farewell(ledger=self.ledger, delivery=self.delivery)

    @property
    def has_more(self) -> bool:
        """Whether there was more to deal than one step does."""
        return self.ranges.has_more

    def note_news(self, worker: str) -> None:
        """Visit a worker with the next step: its checkpoints have come, or it has."""
        self.ranges.note_news(worker)

    async def step(self, now: float, wall_now: float) -> RunRecord | None:
        """Do what there is to do; returns the run that has its turn.

        Args:
            now: monotonic seconds.
            wall_now: Unix time.
        """
        self.ranges.has_more = False
        self.hooks.look(now)
        with self.ledger.read() as t:
            run = run_table.fetch_current_run(t)
        if run is None or run.run != self.assignment.run or run.state == RunState.PENDING:
            self.assignment.settle(run)
        if run is None:
            return None
        if run.state == RunState.PENDING:
            begun = self.begin(run, now, wall_now)
            if begun is None:
                return run
            run = begun
            self.ranges.begin()
        if run.state == RunState.TEARING_DOWN:
            self.hooks.tear_down(run, now, wall_now)
        elif run.state != RunState.RUNNING:
            self._call_back(run, now)
        elif not self.hooks.is_set_up(run, now, wall_now):
            pass
        elif run.spec.is_open:
            self.waves.visit(run, now, wall_now)
            self._farewell.look(run, now)
        else:
            await self.ranges.visit(run, now, wall_now)
            self._farewell.look(run, now)
        return run

    def _call_back(self, run: RunRecord, now: float) -> None:
        """Orders may be lost, so they are repeated until nothing is out."""
        if now - self._stopped_at < _STOP_EVERY_S:
            return
        self._stopped_at = now
        with self.ledger.read() as t:
            out = lease_table.fetch_open_leases(t, run.run)
            period = period_table.fetch_period(t, run.run)
        self.delivery.stop(run, out, None if period is None else period.find_end())
