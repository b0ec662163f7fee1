"""Ends a run that cannot go on, so that its leases do not circulate for ever and other runs get their turn.

A run cannot go on when every live worker refuses it, because something that its spec asks for is missing, or
when one worker after the other dies with its leases and nothing is accounted in between. Both are kept in
memory: a restarted coordinator learns them anew.
"""

import logging
from collections.abc import Callable, Iterable

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history, reclaim
from oku_coordinator.ledger.storage.records import Receipt, RunRecord
from oku_coordinator.ledger.tables import run_table
from oku_coordinator.workers.assignment import Assignment
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.accounting.outcome import count_sent
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.lease import read_lease_run
from oku_core.results.event import Event, EventType

_log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""For this long after the last refusal another worker may still come up: three heartbeats."""
FEWEST_LOSSES = 5
"""In a row, and more than there were workers, so that the loss of a whole node does not count."""
_COUNTED = frozenset({MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED})


class CircuitBreaker:
    """Watches the current run.

    Args:
        ledger: keeps the runs.
        roster: the live workers, and what they refuse.
        assignment: which of them the run has.
        expects_workers: whether more workers are coming.
        clock: Unix time.
    """

    def __init__(
        self,
        ledger: Ledger,
        roster: Roster,
        assignment: Assignment,
        expects_workers: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._assignment = assignment
        self._expects_workers = expects_workers
        self._clock = clock
        self._run: str | None = None
        self._lost: dict[str, None] = {}
        """Processes that have died with a lease of this run since a request of it was last accounted."""
        self._most_workers = 0
        """The largest number of workers that it had at a time."""

    def note_receipts(self, receipts: Iterable[Receipt], now: float) -> None:
        """Note checkpoints that the ledger has taken in, at `now` in monotonic seconds."""
        for receipt in receipts:
            for checkpoint, verdict in zip(receipt.batch.checkpoints, receipt.verdicts, strict=True):
                if verdict not in _COUNTED:
                    continue
                if checkpoint.refusal:
                    self._note_refusal(receipt.batch, checkpoint, now)
                if checkpoint.covered:  # of the current run, as no other one has leases out
                    self._lost.clear()

    def note_lost(self, run: str, incarnations: Iterable[str]) -> None:
        """Note processes that died with leases of the current run."""
        self._turn_to(run)
        self._lost |= dict.fromkeys(incarnations)

    def look(self, now: float) -> None:
        """Look at the current run, at `now` in monotonic seconds."""
        with self._ledger.read() as t:
            run = run_table.fetch_current_run(t)
        self._turn_to(run.run if run else None)
        if run is None or run.state != RunState.RUNNING:
            return
        self._most_workers = max(self._most_workers, self._assignment.count(run.run))
        if reason := self._find_refusal(run, now):
            self._give_up(run, RunState.PAUSED if count_sent(run.outcomes) else RunState.FAILED, reason)
        elif reason := self._find_crash_loop():
            self._give_up(run, RunState.FAILED, reason)

    def _turn_to(self, run: str | None) -> None:
        """A run may lose workers before the first look at it, so whoever comes first turns to it."""
        if run != self._run:
            self._run = run
            self._lost.clear()
            self._most_workers = 0

    def _note_refusal(self, batch: CheckpointBatch, checkpoint: Checkpoint, now: float) -> None:
        run, reason = read_lease_run(checkpoint.lease), checkpoint.refusal
        if self._roster.note_refusal(batch.worker, batch.incarnation, (run, reason), now):
            text = f"worker {batch.worker} cannot begin: {reason}"
            _log.warning("%s", text, extra={"run": run, "worker": batch.worker})
            event = Event(
                at=self._clock(), type=EventType.WORKER_BARRED, text=text, worker=batch.worker, reason=reason
            )
            with self._ledger.change() as t:
                history.keep_events(t, run, [event])

    def _find_refusal(self, run: RunRecord, now: float) -> str:
        """Why no live worker can begin; empty when one can, or when one may be about to come."""
        barred = self._roster.find_barred(run.run)
        others = self._roster.find_able(run.run)
        if not barred or others or self._expects_workers():
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
            reclaim.give_up_run(t, run.run, state, self._clock(), reason)
        self._lost.clear()
