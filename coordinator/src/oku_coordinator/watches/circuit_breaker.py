"""Ends a run that cannot continue, so that its leases do not circulate forever and other runs get their turn.

A run cannot continue when every live worker refuses it because something in its spec is missing, or when one
worker after the other dies with its leases and nothing is accounted in between. Both are kept in memory: a
restarted coordinator starts to count again.
"""

import logging
from collections.abc import Iterable

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history
from oku_coordinator.ledger.rules.leases import expiring
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.outcome import count_sent
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.lease import read_lease_run
from oku_core.process.clock import Clock
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""For this long after the last refusal, another worker may still start: three heartbeats."""
FEWEST_LOSSES = 5
"""In a row, and more than the number of workers, so that the loss of a whole node does not count."""
_COUNTED = frozenset({MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED})


class CircuitBreaker:
    """Watches one run, in Unix time."""

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        assignment: Assignment,
        readiness: Readiness,
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._assignment = assignment
        self._readiness = readiness
        self._clock = clock
        self._lost: dict[str, None] = {}
        """Processes that died with a lease of this run since a request of it was last accounted."""
        self._most_workers = 0
        """The largest number of workers that it had at a time."""

    def record_receipt(self, receipt: Receipt, now: float) -> None:
        """Record stored checkpoints, at `now` in monotonic seconds."""
        for checkpoint, verdict in zip(receipt.batch.checkpoints, receipt.verdicts, strict=True):
            if verdict not in _COUNTED:
                continue
            if checkpoint.refusal:
                self._record_refusal(receipt.batch, checkpoint, now)
            if checkpoint.covered:
                self._lost.clear()

    def record_losses(self, incarnations: Iterable[str]) -> None:
        """Record processes that died with leases of the run."""
        self._lost |= dict.fromkeys(incarnations)

    def check(self, run: RunRecord, now: float) -> None:
        """End the run if it cannot continue, at `now` in monotonic seconds."""
        if run.state != RunState.RUNNING:
            return
        self._most_workers = max(self._most_workers, self._assignment.count(run.run))
        if reason := self._find_refusal(run, now):
            self._give_up(run, RunState.PAUSED if count_sent(run.outcomes) else RunState.FAILED, reason)
        elif reason := self._find_crash_loop():
            self._give_up(run, RunState.FAILED, reason)

    def _record_refusal(self, batch: CheckpointBatch, checkpoint: Checkpoint, now: float) -> None:
        run, reason = read_lease_run(checkpoint.lease), checkpoint.refusal
        if self._roster.record_refusal(batch.worker, batch.incarnation, (run, reason), now):
            text = f"worker {batch.worker} cannot start the run: {reason}"
            _log.warning("%s", text, extra={"run": run, "worker": batch.worker})
            event = Event(
                at=self._clock(), type=EventType.WORKER_BARRED, text=text, worker=batch.worker, reason=reason
            )
            with self._ledger.change() as t:
                history.keep_events(t, run, [event])

    def _find_refusal(self, run: RunRecord, now: float) -> str:
        """Why no live worker can start the run; empty when one can, or may be about to join."""
        barred = self._roster.find_barred(run.run)
        others = self._roster.find_available(run.run)
        if not barred or others or self._readiness.expects_workers():
            return ""
        if now - max(worker.refused_at for worker in barred) < PATIENCE_S:
            return ""
        more = f" (and {len(barred) - 1:,} more)" if len(barred) > 1 else ""
        return f"worker {barred[0].name}: {barred[0].refusal}{more}"

    def _find_crash_loop(self) -> str:
        losses = len(self._lost)
        if losses < FEWEST_LOSSES or losses <= self._most_workers:
            return ""
        return f"{losses:,} workers in a row died with its leases, and no request was accounted in between"

    def _give_up(self, run: RunRecord, state: RunState, reason: str) -> None:
        _log.error("run %s is %s: %s", run.run, state, reason, extra={"run": run.run})
        with self._ledger.change(self._clock()) as t:
            expiring.give_up_run(t, run.run, state, self._clock(), reason)
        self._lost.clear()
