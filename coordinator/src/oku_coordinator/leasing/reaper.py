"""Takes back the leases that will not be reported any more, and calls off workers that do void ones.

Each look goes through all active leases of the run that has its turn; which of them are lost is the rule of
`expiry`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState

_log = logging.getLogger(__name__)

_BATCH = 50
"""Leases taken back in one transaction, which takes about 20 ms."""


class Reaper:
    """Looks at all active leases and takes back those that are lost.

    Args:
        ledger: has the leases.
        roster: who lives.
        broker: takes orders to workers.
        metrics: where leases that are taken back are counted.
        clock: Unix time.
        note_lost: is told of the run and the processes that died with leases of it.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        broker: Broker,
        metrics: Metrics,
        clock: Callable[[], float],
        note_lost: Callable[[str, Iterable[str]], None],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._broker = broker
        self._metrics = metrics
        self._clock = clock
        self._note_lost = note_lost
        self._expiry = ExpiryRule(roster)

    def reset_timers(self, now: float) -> None:
        """Begin every lease's time anew: we could not have heard of them."""
        self._expiry.reset_timers(now)

    async def look(self, now: float) -> None:
        """One look, at `now` in monotonic seconds.

        A thousand workers may be lost in one: their leases are taken back some at a time, a transaction each,
        and others have their turn in between.
        """
        run = self._ledger.runs.fetch_current()
        leases = self._ledger.leases.fetch_active(run.run) if run else []
        active = {lease.id for lease in leases}
        listed = self._roster.find_listed()
        others = listed - active
        if others and (void := self._ledger.leases.find_void(others)):
            # A worker that was declared dead still works on what others have by now, or on a failed run.
            self._broker.send_stop(run=None, leases=void, grace_s=0.0)
        self._roster.forget_leases(active)
        closing = run is not None and run.is_active and run.state != RunState.RUNNING
        lost: dict[ExpiryReason, list[str]] = {}
        for lease, reason in self._expiry.find_lost(leases, listed, now, closing=closing):
            lost.setdefault(reason, []).append(lease)
        by_id = {lease.id: lease for lease in leases}
        for reason, names in lost.items():
            for offset in range(0, len(names), _BATCH):
                self._take_back([by_id[name] for name in names[offset : offset + _BATCH]], reason)
                await asyncio.sleep(0)

    def _take_back(self, leases: Sequence[LeaseRecord], reason: ExpiryReason) -> None:
        expired = set(self._ledger.leases.expire([lease.id for lease in leases], reason, self._clock()))
        for lease in leases:
            if lease.id in expired:  # the others were reported meanwhile
                context = {"run": lease.run, "lease": lease.id, "worker": lease.worker, "reason": reason}
                _log.warning("lease %s is taken back: %s", lease.id, reason, extra=context)
                self._metrics.count_expired(reason)
        if reason == ExpiryReason.WORKER_LOST:
            gone = [lease.incarnation for lease in leases if lease.incarnation is not None]
            self._note_lost(leases[0].run, gone)
