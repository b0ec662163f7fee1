"""Which active leases are lost, and why: a rule over leases and roster, with the clock passed in."""

from collections import Counter
from collections.abc import Collection, Sequence

from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.messaging.lease import LEASE_SLOTS


class ExpiryRule:
    """Remembers since when each lease has been with the worker that has it now.

    A coordinator that was restarted remembers none, so each lease has a full worker timeout again.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._known_since: dict[tuple[str, str | None], float] = {}

    def reset_timers(self, now: float) -> None:
        """Begin every lease's time anew: we could not have heard of them."""
        self._known_since = dict.fromkeys(self._known_since, now)

    def find_lost(
        self, leases: Sequence[LeaseRecord], listed: Collection[str], now: float, *, closing: bool
    ) -> list[tuple[str, ExpiryReason]]:
        """The leases that will not be reported any more.

        Args:
            leases: all active leases of the run.
            listed: the leases that workers say that they have; one may be among them whose claim was lost.
            now: monotonic seconds.
            closing: whether the run waits for nothing but these leases.
        """
        before = self._known_since
        # While no slot is free, as when a worker has left, an unclaimed lease waits in the queue for one.
        # What a worker has beyond its own slots, as after a loss of the broker, fills nobody else's.
        claims = Counter(lease.incarnation for lease in leases if lease.incarnation is not None)
        full_slots = sum(min(count, LEASE_SLOTS) for count in claims.values())
        is_waiting = full_slots >= LEASE_SLOTS * len(self._roster.workers()) and not closing
        self._known_since = {
            (lease.id, lease.incarnation): now
            if lease.incarnation is None and (is_waiting or lease.id in listed)
            else before.get((lease.id, lease.incarnation), now)
            for lease in leases
        }
        lost = []
        for lease in leases:
            reason = self._classify(lease, self._known_since[lease.id, lease.incarnation], now)
            if reason:
                lost.append((lease.id, reason))
        return lost

    def _classify(self, lease: LeaseRecord, known_since: float, now: float) -> ExpiryReason | None:
        overdue = now - known_since > self._roster.worker_timeout_s
        if lease.worker is None or lease.incarnation is None:
            # A worker with a free slot takes what is in the queue at once, so the message is not there.
            return ExpiryReason.NOT_CLAIMED if overdue else None
        if self._roster.is_gone(lease.incarnation):
            return ExpiryReason.WORKER_LOST
        self._roster.enlist(lease.worker, lease.incarnation, now)
        if overdue and not self._roster.is_current(lease.worker, lease.incarnation):
            return ExpiryReason.WORKER_LOST
        if self._roster.has_dropped(lease.worker, lease.id, known_since, now):
            return ExpiryReason.REPORT_LOST
        return None
