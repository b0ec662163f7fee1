"""Tells workers that nothing is left of a run whose users may have something to do when they stop.

What these requests of theirs come to is brought by the last checkpoint of a worker, so it keeps its last
lease open. Only here is it known which one that is: nothing is pending, and all that is out is done.
"""

import math
from dataclasses import dataclass, field

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables import lease_table, slice_table
from oku_core.spec.spec import Engine

_TELL_EVERY_S = 0.5


@dataclass(kw_only=True)
class Farewell:
    """Ends the last leases of one run.

    Args:
        ledger: knows what is left.
        delivery: asks workers to end them.
    """

    ledger: Ledger
    delivery: Delivery
    _told_at: float = field(default=-math.inf, init=False)
    _told: frozenset[str] = field(default=frozenset(), init=False)

    def end_leases(self, run: RunRecord, now: float) -> None:
        """Have the leases of a running run ended once all of it is done; this is repeated, as it may be lost.

        Args:
            run: the run.
            now: monotonic seconds.
        """
        if run.spec.engine is not Engine.LOCUST:
            return
        with self.ledger.read() as t:
            if slice_table.count_pending(t, run.run):
                return
            out = lease_table.fetch_open_leases(t, run.run)
        if any(lease.covered < lease.end for lease in out):
            return
        leases = frozenset(lease.id for lease in out)
        if not leases or (leases == self._told and now - self._told_at < _TELL_EVERY_S):
            return
        self._told, self._told_at = leases, now
        asked: dict[str, dict[str, int]] = {}
        for lease in out:
            asked.setdefault(lease.incarnation, {})[lease.id] = lease.end
        self.delivery.shorten(asked)
