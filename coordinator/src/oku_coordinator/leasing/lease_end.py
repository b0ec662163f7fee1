"""Ends the leases of a run: early when it is stopped, and the last ones when all of its work is done.

Either order may be lost, so it is repeated until no lease is open.
"""

import math
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import AskedEnds, Delivery
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table, slice_table
from oku_core.spec.spec import Engine

_STOP_EVERY_S = 1.0
_END_EVERY_S = 0.5


@dataclass(kw_only=True)
class LeaseEnd:
    """Ends the leases of one run.

    Args:
        ledger: has the open leases.
        delivery: sends the orders.
    """

    ledger: Ledger
    delivery: Delivery
    _stopped: tuple[float | None, float] = field(default=(None, -math.inf), init=False)
    """The time in the last order to stop, and when it was sent."""
    _ended: tuple[frozenset[str], float] = field(default=(frozenset(), -math.inf), init=False)
    """The leases in the last order to end, and when it was sent."""

    def stop(self, run: RunRecord, now: float, at: float | None) -> None:
        """Stop all leases; requests in flight get the grace period of the run.

        Args:
            run: the run.
            now: monotonic seconds.
            at: the Unix time at which to stop; None for at once.
        """
        known_at, sent_at = self._stopped
        if at == known_at and now - sent_at < _STOP_EVERY_S:
            return
        self._stopped = at, now
        with self.ledger.read() as t:
            leases = lease_table.fetch_open_leases(t, run.run)
        if leases:
            self.delivery.stop(run, leases, at)

    def end_kept(self, run: RunRecord, now: float) -> None:
        """End the leases that stay open for requests that users send when they stop, once the run is done.

        The last checkpoint of a worker reports those requests. Only the coordinator knows when nothing is
        pending and all leased work is done.

        Args:
            run: a running run.
            now: monotonic seconds.
        """
        if run.spec.engine is not Engine.LOCUST:
            return
        with self.ledger.read() as t:  # one snapshot: a lease that closes in between may leave holes
            if slice_table.count_pending(t, run.run):
                return
            out = lease_table.fetch_open_leases(t, run.run)
        leases = frozenset(lease.id for lease in out)
        known, ended_at = self._ended
        if any(lease.covered < lease.end for lease in out):
            return
        if not leases or (leases == known and now - ended_at < _END_EVERY_S):
            return
        self._ended = leases, now
        asked: AskedEnds = {}
        for lease in out:
            asked.setdefault(lease.incarnation, {})[lease.id] = lease.end
        self.delivery.shorten(asked)
