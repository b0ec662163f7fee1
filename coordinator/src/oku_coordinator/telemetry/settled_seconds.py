"""Which seconds of a run are settled: every worker that has leases has reported on them since."""

from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import Progress

LONGEST_HOLD_S = 20.0
"""Nothing is held back for longer, however seldom very many workers report."""
_HOLD_CHECKPOINTS = 2
_USUAL_CHECKPOINT_S = 3.0
_ON_THE_WAY_S = 0.5
"""Checkpoints tell of the time before they were sent, which is about this much before they are stored."""


class SettledSeconds:
    """Records when workers have reported on a run. Every time is Unix time by the coordinator's clock.

    Args:
        run: the run.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._reported_at: dict[str, float] = {}
        """Of each worker that has leases; before it had any, there was nothing to report."""
        self._longest_s = _HOLD_CHECKPOINTS * _USUAL_CHECKPOINT_S

    def record_progress(self, progress: Progress, now: float) -> None:
        """Record which leases of the run a worker has."""
        if any(read_lease_run(lease) == self._run for lease in progress.leases):
            self._reported_at.setdefault(progress.worker, now)
        else:
            self._reported_at.pop(progress.worker, None)

    def record_checkpoints(self, worker: str, checkpoint_s: float, now: float) -> None:
        """The ledger has checkpoints of a worker, which sends some every `checkpoint_s` or so."""
        self._longest_s = min(LONGEST_HOLD_S, _HOLD_CHECKPOINTS * checkpoint_s)
        if worker in self._reported_at:
            self._reported_at[worker] = now

    def forget_worker(self, worker: str) -> None:
        """A worker that is gone reports no more."""
        self._reported_at.pop(worker, None)

    def find_end(self, now: float) -> float:
        """Until when all is settled. What is still missing after the longest hold may come later."""
        reported_to = min(self._reported_at.values(), default=now) - _ON_THE_WAY_S
        return max(reported_to, now - self._longest_s)
