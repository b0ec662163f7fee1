"""What has become of the open leases of a worker, and what to do about them: a rule with the clock passed in.

A lease that its worker does not name was lost on the way and is sent again, until it is stale. Then it is
drained: the worker answers with a final checkpoint, whether it has the lease or not. Only a worker that is
dead, or lives and says nothing of the lease for the whole worker timeout, loses it unasked. One that is about
to leave is asked for it at once.
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
"""A lease must have reached its worker within this time."""
_REPEAT_S = 3.0
"""A lease that its worker does not name for so long is sent again, or drained."""


class Remedy(Enum):
    """What is done about a lease that its worker does not name."""

    RESEND = auto()
    DRAIN = auto()


@dataclass
class _Watched:
    """When a lease was first known, last named by its worker, and when something was done about it last."""

    known_at: float
    acted_at: float
    named_at: float | None = None

    def reset(self, at: float) -> None:
        """Begin its time anew at a later one."""
        self.known_at, self.acted_at = max(self.known_at, at), max(self.acted_at, at)
        if self.named_at is not None:
            self.named_at = max(self.named_at, at)


class ExpiryRule:
    """Remembers when each open lease of one run was heard of.

    A coordinator that was restarted remembers nothing, so each lease has a full worker timeout again.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._watched: dict[str, _Watched] = {}
        self._reset_at = -math.inf

    def reset_timers(self, now: float) -> None:
        """Begin every lease's time anew: we could not have heard of them."""
        self._reset_at = now

    def forget_others(self, leases: Iterable[str]) -> None:
        """Keep what is remembered of these leases only."""
        self._watched = {lease: self._watched[lease] for lease in leases if lease in self._watched}

    def record_sent(self, lease: str, now: float) -> None:
        """A lease is sent."""
        self._watched.setdefault(lease, _Watched(now, now)).acted_at = now

    def record_named(self, lease: str, now: float) -> None:
        """A worker has said something of a lease."""
        watched = self._watched.setdefault(lease, _Watched(now, now))
        watched.named_at = watched.acted_at = now

    def judge(self, lease: LeaseRecord, now: float, wall_now: float) -> ExpiryReason | Remedy | None:
        """What is to be done about an open lease; None if nothing is.

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
            watched.named_at = watched.acted_at = max(worker.heard_at, watched.named_at or 0.0)
            return None
        return self._judge_unnamed(lease, watched, worker, now, wall_now)

    def _judge_silent(self, lease: LeaseRecord, watched: _Watched, now: float) -> ExpiryReason | None:
        """The process that has the lease has not spoken since this coordinator started, or has left."""
        self._roster.enlist(lease.worker, lease.incarnation, now)
        is_current = self._roster.is_current(lease.worker, lease.incarnation)
        is_overdue = now - watched.known_at > self._roster.worker_timeout_s
        return ExpiryReason.WORKER_LOST if is_overdue and not is_current else None

    def _judge_unnamed(
        self, lease: LeaseRecord, watched: _Watched, worker: WorkerState, now: float, wall_now: float
    ) -> ExpiryReason | Remedy | None:
        timeout_s = self._roster.find_timeout_s(worker)
        stale_s = wall_now - lease.cut_at - START_WITHIN_S
        has_had = lease.sequence > 0 or watched.named_at is not None
        # Measured to its last word: a worker that has fallen silent has dropped nothing, it may be dead.
        if has_had:
            if worker.heard_at - (watched.named_at or watched.known_at) > timeout_s:
                return ExpiryReason.DROPPED
        elif stale_s > timeout_s and worker.heard_at - watched.known_at > timeout_s:
            return ExpiryReason.NOT_TAKEN
        if worker.stopping:
            return Remedy.DRAIN
        # What it said last may be from before the lease reached it.
        if now - watched.acted_at < _REPEAT_S or worker.heard_at - watched.acted_at < _REPEAT_S / 2:
            return None
        watched.acted_at = now
        return Remedy.DRAIN if has_had or stale_s > 0 else Remedy.RESEND
