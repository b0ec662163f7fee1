"""Up to when the series of a run is complete: which seconds all workers that have leases have told of.

A message with checkpoints says up to when it tells. A worker without news sends none; then its progress shows
that it has done nothing that the ledger does not have. Every time is Unix time by the coordinator's clock.
"""

import math
from collections.abc import Sequence

from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.messaging.progress import LeaseProgress, Progress

_STORED = frozenset({MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED, MessageVerdict.REPEATED})


class SettledSeries:
    """Records what processes of workers have told; each is named by its incarnation."""

    def __init__(self) -> None:
        self._told_to: dict[str, float] = {}
        self._progress: dict[str, Progress] = {}

    def record_receipt(self, receipt: Receipt) -> None:
        """Record checkpoints that the ledger has."""
        if receipt.batch.checkpoints and _STORED.issuperset(receipt.verdicts):
            self._record(receipt.batch.incarnation, receipt.batch.told_to)

    def record_progress(self, progress: Progress) -> None:
        """Record how far a worker is with its leases."""
        self._progress[progress.incarnation] = progress

    def find_end(self, leases: Sequence[LeaseRecord], now: float) -> float:
        """Up to when all is told of a run that has these open leases; minus infinity if nobody knows."""
        held: dict[str, list[LeaseRecord]] = {}
        for lease in leases:
            held.setdefault(lease.incarnation, []).append(lease)
        for incarnation, ours in held.items():
            seen = self._progress.get(incarnation)
            if seen is not None and all(_is_stored(seen.leases.get(lease.id), lease) for lease in ours):
                coordinator_at = math.inf if seen.coordinator_at is None else seen.coordinator_at
                self._record(incarnation, min(seen.at, coordinator_at))
        return min((self._told_to.get(incarnation, -math.inf) for incarnation in held), default=now)

    def forget(self, incarnation: str) -> None:
        """A process is gone, and tells nothing more."""
        self._told_to.pop(incarnation, None)
        self._progress.pop(incarnation, None)

    def _record(self, incarnation: str, told_to: float) -> None:
        self._told_to[incarnation] = max(told_to, self._told_to.get(incarnation, -math.inf))


def _is_stored(seen: LeaseProgress | None, lease: LeaseRecord) -> bool:
    """Whether the ledger has all that a worker has done of a lease; one that it does not name is new."""
    if seen is None:
        return not lease.sequence
    return seen.taken == lease.done and seen.outcomes == lease.outcomes
