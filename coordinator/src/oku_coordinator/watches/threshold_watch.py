"""Watches the thresholds of a run: records certain losses, and ends the run if a threshold aborts it.

The ledger records a loss before anything follows from it. So a verdict is final, and a restarted coordinator
ends a run that its predecessor should have ended.
"""

import contextlib
import logging
import math
from collections.abc import Sequence

import msgspec

from oku_coordinator.event_loop import LoopSignals
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history, lifecycle, snapshots
from oku_coordinator.ledger.storage.lease_records import LeaseRecord, Receipt
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.tables import threshold_table
from oku_coordinator.runs.summary.stretch_watch import StretchView, StretchWatch
from oku_coordinator.runs.summary.threshold_summaries import judge_thresholds
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.process.clock import Clock
from oku_core.results.sample import Sample
from oku_core.spec.values.threshold import Threshold
from oku_core.summary.tick import Tick
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_log = logging.getLogger(__name__)

_STORED = frozenset({MessageVerdict.ACCOUNTED, MessageVerdict.CLOSED, MessageVerdict.REPEATED})


class SettledSeries:
    """Finds up to when the series of a run is complete: all workers with leases have reported those seconds.

    A checkpoint message contains the time that it covers. A worker without news sends none; then its progress
    shows that the ledger has all of its work. Every time is Unix time by the coordinator's clock. Each
    process is named by its incarnation.
    """

    def __init__(self) -> None:
        self._reported_to: dict[str, float] = {}
        self._progress: dict[str, Progress] = {}

    def record_receipt(self, receipt: Receipt) -> None:
        """Record stored checkpoints."""
        if receipt.batch.checkpoints and _STORED.issuperset(receipt.verdicts):
            self._record(receipt.batch.incarnation, receipt.batch.told_to)

    def record_progress(self, progress: Progress) -> None:
        """Record the positions of a worker in its leases."""
        self._progress[progress.incarnation] = progress

    def find_end(self, leases: Sequence[LeaseRecord], now: float) -> float:
        """Up to when a run with these open leases is fully reported; minus infinity if unknown."""
        held: dict[str, list[LeaseRecord]] = {}
        for lease in leases:
            held.setdefault(lease.incarnation, []).append(lease)
        for incarnation, ours in held.items():
            seen = self._progress.get(incarnation)
            if seen is not None and all(_is_stored(seen.leases.get(lease.id), lease) for lease in ours):
                coordinator_at = math.inf if seen.coordinator_at is None else seen.coordinator_at
                self._record(incarnation, min(seen.at, coordinator_at))
        return min((self._reported_to.get(incarnation, -math.inf) for incarnation in held), default=now)

    def forget(self, incarnation: str) -> None:
        """Forget a process that is gone."""
        self._reported_to.pop(incarnation, None)
        self._progress.pop(incarnation, None)

    def _record(self, incarnation: str, reported_to: float) -> None:
        self._reported_to[incarnation] = max(reported_to, self._reported_to.get(incarnation, -math.inf))


def _is_stored(seen: LeaseProgress | None, lease: LeaseRecord) -> bool:
    """Whether the ledger has all work of a lease; an unreported lease is new."""
    if seen is None:
        return not lease.sequence
    return seen.taken == lease.done and seen.outcomes == lease.outcomes


class ThresholdWatch:
    """Judges the thresholds of one run with each of its ticks, in Unix time."""

    def __init__(self, ledger: Ledger, signals: LoopSignals, clock: Clock) -> None:
        self._ledger = ledger
        self._signals = signals
        self._clock = clock
        self._stretches: StretchWatch | None = None
        self.settled = SettledSeries()
        """Up to when workers have reported."""

    def judge(self, run: RunRecord, tick: Tick) -> Tick:
        """Judge the thresholds of a run at a tick, which is returned with their summaries."""
        if not run.spec.thresholds:
            return tick
        if self._stretches is None:
            self._stretches = StretchWatch(run.spec)
        if run.is_active and self._stretches:
            self._judge_stretches(run, self._stretches, tick.sample)
        clock_s = tick.sample.active_s if tick.clock_s is None else tick.clock_s
        with self._ledger.read() as t:
            basis = snapshots.fetch_threshold_basis(t, run.run)
            summaries = judge_thresholds(basis, clock_s)
        lost = [
            (number, run.spec.thresholds[number])
            for number, summary in enumerate(summaries)
            if summary.verdict is ThresholdVerdict.FAILED
        ]
        for number, threshold in lost:
            self._record_loss(run, number, threshold, basis.thresholds.get(number))
        if run.state == RunState.RUNNING:
            self._end(run, [threshold for _, threshold in lost if threshold.aborts])
        return msgspec.structs.replace(tick, thresholds=summaries)

    def _judge_stretches(self, run: RunRecord, stretches: StretchWatch, sample: Sample) -> None:
        now = self._clock()
        with self._ledger.read() as t:
            basis = snapshots.fetch_stretch_basis(t, run.run, stretches.since)
            kept = threshold_table.fetch_thresholds(t, run.run)
        view = StretchView(run, sample, basis, self.settled.find_end(basis.leases, now))
        changed = stretches.update(view, kept)
        if changed:
            with self._ledger.change() as t:
                history.record_stretches(t, run.run, changed)
        for number, record in changed.items():
            if record.loss is not None:
                self._record_loss(run, number, run.spec.thresholds[number], record)

    def _record_loss(
        self, run: RunRecord, number: int, threshold: Threshold, record: ThresholdRecord | None
    ) -> None:
        if record is not None and record.lost_at is not None:
            return
        text = f"threshold lost: {threshold}"
        _log.warning("%s", text, extra={"run": run.run})
        with self._ledger.change() as t:
            history.record_lost_threshold(t, run.run, number, self._clock(), text)

    def _end(self, run: RunRecord, lost: list[Threshold]) -> None:
        """End a run like a cancel: requests in flight may finish, and it cannot be resumed."""
        if lost:
            reason = f"threshold lost: {lost[0]}"
            with contextlib.suppress(TransitionError):  # its last request has ended meanwhile
                with self._ledger.change(self._clock()) as t:
                    lifecycle.change_state(t, run.run, RunState.CANCELLING, self._clock(), reason)
                _log.warning("run %s ends: %s", run.run, reason, extra={"run": run.run})
                self._signals.wake()
