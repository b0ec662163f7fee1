"""Sweeps the open leases of a run: lost ones are sent again, and the leases of dead workers expire.

The rule of `expiry` decides about each.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.expiry import ExpiryRule, Remedy
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.void_work import Held
from oku_coordinator.leasing.waves.pieces import Piece
from oku_coordinator.leasing.waves.wave_plan import build_wave_plan
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import expiring
from oku_coordinator.ledger.rules.leases.expiring import FindLost, find_nothing
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import schedule_table
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.watches.circuit_breaker import CircuitBreaker
from oku_coordinator.workers.worker_state import FlightRecords, WorkerState
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)

_BATCH = 50
"""Leases that expire in one transaction, which takes about 20 ms."""
_LOSING = frozenset({ExpiryReason.WORKER_LOST, ExpiryReason.DROPPED})
"""Their holders may have sent the requests that were due."""
_JUDGED_AT_ONCE = 2_000
"""Leases judged before the loop yields; it takes a few milliseconds."""


@dataclass(kw_only=True)
class Reaper:
    """Acts on the leases of one run that are missing or whose worker is dead.

    Args:
        ledger: has the leases.
        expiry: decides about each lease.
        delivery: sends leases again, and drains them.
        pace: slows down after losses.
        metrics: counts leases that expire.
        clock: Unix time.
        breaker: ends the run after too many losses.
        records: show how far dead processes got.
        shares: of the workers.
    """

    ledger: Ledger
    expiry: ExpiryRule
    delivery: Delivery
    pace: Pace
    metrics: Metrics
    clock: Clock
    breaker: CircuitBreaker
    records: FlightRecords
    shares: Shares

    async def sweep(self, run: RunRecord, held: Held, suspects: Sequence[WorkerState], now: float) -> None:
        """Sweep the open leases of the run.

        A thousand workers may be lost in one sweep: their leases expire in small transactions, and the loop
        yields in between.

        Args:
            run: the run.
            held: its open leases.
            suspects: workers that have just become suspect.
            now: monotonic seconds.
        """
        await self._shorten_suspects(suspects, held)
        judged: dict[ExpiryReason | Remedy, list[LeaseRecord]] = {}
        wall_now = self.clock()
        leases = [lease for mine in held.values() for lease in mine]
        for number, lease in enumerate(leases):
            if finding := self.expiry.judge(lease, now, wall_now):
                if finding == Remedy.RESEND and run.state != RunState.RUNNING:
                    finding = Remedy.DRAIN  # no worker should start with it any more
                judged.setdefault(finding, []).append(lease)
            if number % _JUDGED_AT_ONCE == _JUDGED_AT_ONCE - 1:
                await asyncio.sleep(0)
        self.expiry.forget_others(lease.id for lease in leases)
        await self._act(run, judged, now)
        self._lower_resent(run)

    async def _act(
        self, run: RunRecord, judged: Mapping[ExpiryReason | Remedy, Sequence[LeaseRecord]], now: float
    ) -> None:
        for finding, leases in judged.items():
            if finding == Remedy.RESEND:
                self.delivery.send(run, leases, self.shares)
            elif finding == Remedy.DRAIN:
                self.delivery.drain((lease.incarnation, lease.id) for lease in leases)
            elif isinstance(finding, ExpiryReason):
                for offset in range(0, len(leases), _BATCH):
                    self._expire(run, leases[offset : offset + _BATCH], finding, now)
                    await asyncio.sleep(0)

    async def _shorten_suspects(self, suspects: Sequence[WorkerState], held: Held) -> None:
        """Return the work beyond the limits of silent workers to the pool: they never pass these limits."""
        names = [lease.id for worker in suspects for lease in held.get(worker.incarnation, ())]
        for offset in range(0, len(names), _BATCH):
            with self.ledger.change(self.clock()) as t:
                expiring.shorten_to_limits(t, names[offset : offset + _BATCH])
            await asyncio.sleep(0)

    def _expire(
        self, run: RunRecord, leases: Sequence[LeaseRecord], reason: ExpiryReason, now: float
    ) -> None:
        wall_now = self.clock()
        names = [lease.id for lease in leases]
        if run.spec.is_open and reason in _LOSING:
            find_lost: FindLost = self._build_find_lost(run, wall_now)
        else:
            find_lost = find_nothing
        # A dropped worker is alive, and only dead ones have records.
        find_reached = self.records.find_reached
        with self.ledger.change(wall_now) as t:
            expired = set(expiring.expire_leases(t, names, reason, wall_now, find_lost, find_reached))
        for lease in leases:
            if lease.id in expired:  # the others were closed meanwhile
                context = {"run": lease.run, "lease": lease.id, "worker": lease.worker, "reason": reason}
                _log.warning("lease %s is taken back: %s", lease.id, reason, extra=context)
                self.metrics.count_expired(reason)
        if reason == ExpiryReason.WORKER_LOST:
            self.pace.record_loss(now)
            self.breaker.record_losses(lease.incarnation for lease in leases)

    def _lower_resent(self, run: RunRecord) -> None:
        """Apply flight records that were found after their leases expired."""
        dead = self.records.find_unapplied(run.run)
        if not dead:
            return
        with self.ledger.change(self.clock()) as t:
            lowered = expiring.lower_resent_of_dead(t, run.run, dead, self.records.find_reached)
        self.records.record_applied(run.run, dead)
        if lowered:
            _log.info(
                "flight records lower resent_at_most by %d requests", lowered,
                extra={"run": run.run},
            )  # fmt: skip

    def _build_find_lost(self, run: RunRecord, wall_now: float) -> FindLost:
        """Build the rule for work of a lease that may have been sent and is too late to repeat."""
        with self.ledger.read() as t:
            period = schedule_table.fetch_period(t, run.run)
            waves = {wave.begin: wave for wave in schedule_table.fetch_waves(t, run.run)}
        plan = build_wave_plan(run.spec)

        def find_lost(lease: LeaseRecord, at_risk: Sequence[Range]) -> list[Range]:
            if period is None or lease.wave is None or not at_risk:
                return []
            piece = Piece(waves[lease.wave], lease.lane, at_risk)
            return plan.find_lost(piece, period.count_s(wall_now))

        return find_lost
