"""The rule for open leases that their worker does not report, with the clock passed in.

Such a lease was lost on the way and is sent again until it is stale. Then it is drained: the worker answers
with a final checkpoint, whether it has the lease or not. Only a worker that is dead, or that lives and does
not report the lease for the whole worker timeout, loses it without being asked. A worker that is about to
leave is asked at once.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import WorkerState
from oku_core.accounting.lease_state import ExpiryReason

START_WITHIN_S = 60.0
"""The time within which a lease must reach its worker."""
_REPEAT_S = 3.0
"""A lease that its worker has not reported for this long is sent again, or drained."""


class Remedy(Enum):
    """The action on a lease that its worker does not report."""

    RESEND = auto()
    DRAIN = auto()


@dataclass
class _Watched:
    """When a lease was first known, last reported by its worker, and last sent or drained."""

    known_at: float
    acted_at: float
    named_at: float | None = None

    def reset(self, at: float) -> None:
        """Restart its timers."""
        self.known_at, self.acted_at = max(self.known_at, at), max(self.acted_at, at)
        if self.named_at is not None:
            self.named_at = max(self.named_at, at)


class ExpiryRule:
    """Tracks when each open lease of one run was last reported.

    After a restart of the coordinator, each lease has a full worker timeout again.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._watched: dict[str, _Watched] = {}
        self._reset_at = -math.inf

    def reset_timers(self, now: float) -> None:
        """Restart the timers of every lease: no report could arrive."""
        self._reset_at = now

    def forget_others(self, leases: Iterable[str]) -> None:
        """Keep the timers of these leases only."""
        self._watched = {lease: self._watched[lease] for lease in leases if lease in self._watched}

    def record_sent(self, lease: str, now: float) -> None:
        """Record that a lease was sent."""
        self._watched.setdefault(lease, _Watched(now, now)).acted_at = now

    def record_named(self, lease: str, now: float) -> None:
        """Record that a worker has reported a lease."""
        watched = self._watched.setdefault(lease, _Watched(now, now))
        watched.named_at = watched.acted_at = now

    def judge(self, lease: LeaseRecord, now: float, wall_now: float) -> ExpiryReason | Remedy | None:
        """The action on an open lease; None if none is needed.

        Args:
            lease: as the ledger has it.
            now: monotonic seconds.
            wall_now: Unix time.
        """
        watched = self._watched.get(lease.id)
        if watched is None:
            watched = self._watched[lease.id] = _Watched(now, now)
        watched.reset(self._reset_at)
        if self._roster.is_gone(lease.incarnation):
            return ExpiryReason.WORKER_LOST
        worker = self._roster.find(lease.worker, lease.incarnation)
        if worker is None:
            return self._judge_silent(lease, watched, now)
        if lease.id in worker.leases:
            watched.named_at = watched.acted_at = max(worker.last_seen_at, watched.named_at or 0.0)
            return None
        return self._judge_unnamed(lease, watched, worker, now, wall_now)

    def _judge_silent(self, lease: LeaseRecord, watched: _Watched, now: float) -> ExpiryReason | None:
        """Judge the lease of a process that has been silent since this coordinator started, or has left."""
        self._roster.add_named(lease.worker, lease.incarnation, now)
        is_current = self._roster.is_current(lease.worker, lease.incarnation)
        is_overdue = now - watched.known_at > self._roster.worker_timeout_s
        return ExpiryReason.WORKER_LOST if is_overdue and not is_current else None

    def _judge_unnamed(
        self, lease: LeaseRecord, watched: _Watched, worker: WorkerState, now: float, wall_now: float
    ) -> ExpiryReason | Remedy | None:
        timeout_s = self._roster.find_timeout_s(worker)
        stale_s = wall_now - lease.cut_at - START_WITHIN_S
        has_had = lease.sequence > 0 or watched.named_at is not None
        # Measured up to its last message: a worker that has fallen silent has dropped nothing, it may be
        # dead.
        if has_had:
            if worker.last_seen_at - (watched.named_at or watched.known_at) > timeout_s:
                return ExpiryReason.DROPPED
        elif stale_s > timeout_s and worker.last_seen_at - watched.known_at > timeout_s:
            return ExpiryReason.NOT_TAKEN
        if worker.stopping:
            return Remedy.DRAIN
        # Its last message may be older than the arrival of the lease.
        if now - watched.acted_at < _REPEAT_S or worker.last_seen_at - watched.acted_at < _REPEAT_S / 2:
            return None
        watched.acted_at = now
        return Remedy.DRAIN if has_had or stale_s > 0 else Remedy.RESEND
