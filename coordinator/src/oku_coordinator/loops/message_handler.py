"""Handles the messages of workers.

`CheckpointReceiver` runs in the thread of their listener, so that answers wait for nothing else: a
transaction of the ledger, then an answer to each worker. `MessageHandler` runs in the event loop and passes
receipts and progress on to roster, leases, ticks and watches.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.broker.sender import Broker
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import intake
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.loops.ticker import Ticker
from oku_coordinator.runs.printed_lines import PrintedLines
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.order import Control
from oku_core.messaging.progress import Progress
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckpointReceiver:
    """Applies checkpoints to the ledger and answers them.

    Args:
        ledger: stores them.
        broker: sends the answers.
        active_runs: have the allowances of workers and their shares of runs.
        metrics: count them.
        printed: collects what user code has printed.
        clock: Unix time.
        timer: seconds of any steady clock.
    """

    ledger: Ledger
    broker: Broker
    active_runs: ActiveRuns
    metrics: Metrics
    printed: PrintedLines
    clock: Clock
    timer: Clock = time.monotonic

    def receive(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """Store checkpoints in the ledger, answer and count them."""
        for batch in batches:
            if batch.printed is not None:
                self.printed.record(batch.worker, batch.incarnation, batch.printed)
        begun = self.timer()
        receipts = self._apply(batches)
        self.broker.send(build_controls(receipts, self.active_runs))
        verdicts = [verdict for receipt in receipts for verdict in receipt.verdicts]
        self.metrics.count_messages(verdicts, self.timer() - begun)
        return receipts

    def _apply(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """Store batches in one transaction. A run that does not balance fails; the rest is retried."""
        while True:
            try:
                now = self.clock()
                with self.ledger.change(now) as t:
                    return intake.fold_batches(t, batches, self.active_runs.allow, now)
            except BreachError as error:
                _log.exception("a run has failed", extra={"run": error.run})


def build_controls(receipts: Iterable[Receipt], active_runs: ActiveRuns) -> list[Control]:
    """Build the answers to workers: confirmations, limits, leases to end, and their shares of the run."""
    controls = []
    for receipt in receipts:
        if receipt.confirmed or receipt.limits or receipt.ends:
            to = receipt.batch.incarnation
            active = next(iter(active_runs.find_named(receipt.batch)), None)
            controls.append(
                Control(
                    incarnation=to,
                    confirmed=receipt.confirmed,
                    limits=receipt.limits,
                    ends=receipt.ends,
                    share=None if active is None else active.shares.find(to),
                )
            )
    return controls


@dataclass
class MessageHandler:
    """Handles receipts of checkpoints, and progress.

    Args:
        installation: has the roster, and the signals that start a round of the main loop.
        active_runs: the runs that have their turn.
        ticker: makes ticks from progress.
        clock_store: may restore the clock of runs from workers.
        interval_announcer: sends workers the intervals of their reports.
        monotonic: monotonic seconds.
    """

    installation: Installation
    active_runs: ActiveRuns
    ticker: Ticker
    clock_store: ClockStore
    interval_announcer: IntervalAnnouncer
    monotonic: Clock = time.monotonic

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Handle checkpoints that the ledger has stored."""
        now, roster = self.monotonic(), self.installation.roster
        for receipt in receipts:
            batch = receipt.batch
            roster.record_taken(batch)
            for checkpoint, verdict in zip(batch.checkpoints, receipt.verdicts, strict=True):
                if verdict == MessageVerdict.CLOSED:
                    roster.forget_lease(batch.worker, batch.incarnation, checkpoint.lease)
            for active in self.active_runs.find_named(batch):
                active.record_receipt(receipt, now)
        self.installation.signals.wake()

    def handle_progress(self, reports: Sequence[Progress]) -> None:
        """Handle progress of workers."""
        signals, roster = self.installation.signals, self.installation.roster
        if any(active.shares.is_awaited for active in self.active_runs):
            signals.wake()
        self.clock_store.record_progress(reports, self.monotonic())
        # Before any lease expires: flight records show how far dead processes got.
        if self.installation.records.record(record for progress in reports for record in progress.found):
            signals.sweep()
        if any(progress.stopping and not roster.is_leaving(progress.worker) for progress in reports):
            signals.sweep()  # it waits for the confirmation that nothing is on its way to it
        if self.ticker.record(reports, self.monotonic()):
            self.interval_announcer.repeat_soon()  # it does not know the clock
            for progress in reports:
                self.active_runs.schedule_visit(progress.worker)
            signals.sweep()  # the leases of a replaced process are lost

    def handle_connect(self) -> None:
        """Ask workers to report again over a new connection: earlier reports may be lost."""
        self.interval_announcer.repeat()
        self.installation.signals.sweep()
