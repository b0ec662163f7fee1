"""Watches the thresholds of a run: keeps losses that are certain, and ends a run by them.

The ledger learns of a loss before anything follows from it. So a verdict that was given stays, and a
coordinator that comes back ends a run that the one before it should have ended.
"""

import contextlib
import logging

import msgspec

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules import history, lifecycle, snapshots
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.tables import threshold_table
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.runs.settled_series import SettledSeries
from oku_coordinator.runs.stretch_watch import Look, StretchWatch
from oku_coordinator.runs.threshold_summaries import judge_thresholds
from oku_core.accounting.run_state import RunState, TransitionError
from oku_core.process.clock import Clock
from oku_core.results.sample import Sample
from oku_core.results.tick import Tick
from oku_core.spec.values.threshold import Threshold
from oku_core.thresholds.threshold_summary import ThresholdVerdict

_log = logging.getLogger(__name__)


class ThresholdWatch:
    """Judges the thresholds of one run with each of its ticks.

    Args:
        ledger: keeps the account, and what is lost.
        signals: begin a round when a run is ended.
        clock: Unix time.
    """

    def __init__(self, ledger: Ledger, signals: LoopSignals, clock: Clock) -> None:
        self._ledger = ledger
        self._signals = signals
        self._clock = clock
        self._stretches: StretchWatch | None = None
        self.told = SettledSeries()
        """Up to when workers have told what they did."""

    def judge(self, run: RunRecord, tick: Tick) -> Tick:
        """Judge the thresholds of a run as of a tick, which is given back with what became of them."""
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
        look = Look(run, sample, basis, self.told.find_end(basis.leases, now))
        changed = stretches.look(look, kept)
        if changed:
            with self._ledger.change() as t:
                history.keep_stretches(t, run.run, changed)
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
        """End a run as a cancel does: what is in flight may finish, and nothing of it can be resumed."""
        if lost:
            reason = f"threshold lost: {lost[0]}"
            with contextlib.suppress(TransitionError):  # its last request has ended meanwhile
                with self._ledger.change(self._clock()) as t:
                    lifecycle.change_state(t, run.run, RunState.CANCELLING, self._clock(), reason)
                _log.warning("run %s ends: %s", run.run, reason, extra={"run": run.run})
                self._signals.wake()
