"""Deals an open run: cuts its schedule into waves ahead of time, and deals returned work again.

It accounts requests that no worker holds and that are too late to send.
"""

import math
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.run_clock import RunClock
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.waves.pieces import cut_pieces, find_earliest_due
from oku_coordinator.leasing.waves.wave_plan import AHEAD_S, WavePlan, build_wave_plan
from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules.leases import unsent, waves
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.storage.schedule_records import Deal, Dealing, PeriodRecord
from oku_coordinator.workers.assignment import Assignment

_LEAD_S = 1.0
"""The delay from opening a period to its start: the first leases reach their workers before it."""
_REWIND_S = 15.0
"""When a run continues, requests in flight are due again if they were due this long before the stop."""
_VISIT_EVERY_S, _ACCOUNT_EVERY_S = 0.2, 1.0
_RECONNECT_S, _RECONNECT_AHEAD_S = 3.0, 5.0
"""After a restart, a coordinator deals less ahead while workers reconnect: there may soon be more."""


@dataclass(kw_only=True)
class WaveDealer:
    """Deals one open run.

    Args:
        ledger: the truth.
        assignment: the workers of the run.
        delivery: sends leases to workers.
        expiry: follows the leases that are sent.
        clock: the clock of the run.
        shares: of the workers; one without a share gets no lease.
    """

    ledger: Ledger
    assignment: Assignment
    delivery: Delivery
    expiry: ExpiryRule
    clock: RunClock
    shares: Shares
    _visited_at: float = field(default=-math.inf, init=False)
    _accounted_at: float = field(default=-math.inf, init=False)
    _takers_since: float = field(default=math.inf, init=False)
    """Since when there has been a worker to deal to."""

    def visit(self, run: RunRecord, now: float, wall_now: float) -> None:
        """Deal the next part of a running run.

        Args:
            run: the run.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        if now - self._visited_at < _VISIT_EVERY_S:
            return
        self._visited_at = now
        plan = build_wave_plan(run.spec)
        workers = self.shares.find_takers(self.assignment.workers(run.run))
        takers = [worker for worker in workers if worker.knows_clock and not worker.is_suspect]
        self._takers_since = min(now, self._takers_since) if takers else math.inf
        period = self.clock.find_period(run)
        if period is None:
            if self.delivery.is_away:
                return  # the first requests would be due before their leases arrive
            period = self._open_period(run, plan, wall_now, workers=len(takers))
            if period is None:
                return
            self._takers_since = -math.inf  # it has waited for them
        clock_s = period.count_s(wall_now)
        if now - self._accounted_at >= _ACCOUNT_EVERY_S:
            self._accounted_at = now
            self._account(run, plan, clock_s, wall_now)
        ahead_s = AHEAD_S if now - self._takers_since >= _RECONNECT_S else _RECONNECT_AHEAD_S
        ahead_s += period.measure_s(wall_now) - clock_s  # of the schedule itself
        if self.delivery.is_away:
            takers = []  # leases would pile up

        def decide(dealing: Dealing) -> Deal | None:
            return plan.plan(dealing, takers, clock_s, ahead_s)

        with self.ledger.change(wall_now) as t:
            leases = waves.deal(t, run.run, decide, wall_now)
        for lease in leases:
            self.expiry.record_sent(lease.id, now)
        self.delivery.send(run, leases, self.shares)

    def _open_period(
        self, run: RunRecord, plan: WavePlan, wall_now: float, *, workers: int
    ) -> PeriodRecord | None:
        def find_offset_s(stop_s: float) -> float:
            """The offset after a stop: requests that were in flight are due again, so none is late."""
            with self.ledger.read() as t:
                dealing = waves.fetch_dealing(t, run.run)
            pieces = cut_pieces(dealing.waves, dealing.pending)
            earliest_s = find_earliest_due(plan.schedule, pieces)
            return max(0.0, stop_s - _REWIND_S, min(stop_s, earliest_s))

        return self.clock.open_period(
            run,
            wall_now,
            workers=workers,
            lead_s=_LEAD_S,
            find_offset_s=find_offset_s,
        )

    def _account(self, run: RunRecord, plan: WavePlan, clock_s: float, wall_now: float) -> None:
        """Account requests that are too late to send, and delete waves that are fully accounted."""
        with self.ledger.read() as t:
            dealing = waves.fetch_dealing(t, run.run)
        past = plan.find_overdue(dealing, clock_s)
        if past:
            with self.ledger.change(wall_now) as t:
                unsent.account_not_dealt(t, run.run, past, wall_now)
        batches.drop_accounted_waves(self.ledger, run.run)
