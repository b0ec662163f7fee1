"""Finds the settled seconds of a run: every worker with leases has reported on them."""

from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import Progress

LONGEST_HOLD_S = 20.0
"""The longest wait for reports, even if very many workers report rarely."""
_HOLD_CHECKPOINTS = 2
_USUAL_CHECKPOINT_S = 3.0
_ON_THE_WAY_S = 0.5
"""Checkpoints cover the time before they were sent, which is about this much before they are stored."""


class SettledSeconds:
    """Tracks when workers have reported on a run. Every time is Unix time by the coordinator's clock.

    Args:
        run: the run.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._reported_at: dict[str, float] = {}
        """By worker with leases; without leases, there is nothing to report."""
        self._longest_s = _HOLD_CHECKPOINTS * _USUAL_CHECKPOINT_S

    def record_progress(self, progress: Progress, now: float) -> None:
        """Record which leases of the run a worker has."""
        if any(read_lease_run(lease) == self._run for lease in progress.leases):
            self._reported_at.setdefault(progress.worker, now)
        else:
            self._reported_at.pop(progress.worker, None)

    def record_checkpoints(self, worker: str, checkpoint_s: float, now: float) -> None:
        """Record stored checkpoints of a worker, which sends them about every `checkpoint_s`."""
        self._longest_s = min(LONGEST_HOLD_S, _HOLD_CHECKPOINTS * checkpoint_s)
        if worker in self._reported_at:
            self._reported_at[worker] = now

    def forget_worker(self, worker: str) -> None:
        """Stop waiting for a worker that is gone."""
        self._reported_at.pop(worker, None)

    def find_end(self, now: float) -> float:
        """The time up to which all is settled. Reports after the longest wait may come later."""
        reported_to = min(self._reported_at.values(), default=now) - _ON_THE_WAY_S
        return max(reported_to, now - self._longest_s)
