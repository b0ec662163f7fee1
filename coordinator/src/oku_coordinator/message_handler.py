"""Handles messages of workers in the event loop: roster, leases, ticks and watches follow them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.loop_signals import LoopSignals
from oku_coordinator.ticker import Ticker
from oku_coordinator.workers.intervals import IntervalAnnouncer
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.messaging.progress import Progress
from oku_core.process.clock import Clock


@dataclass(kw_only=True)
class MessageHandler:
    """Handles receipts of checkpoints, and progress.

    Args:
        signals: begin a round of the main loop.
        clock_store: may learn the clock of runs from workers.
        roster: who lives.
        active_runs: the runs that have their turn.
        ticker: makes ticks of progress.
        interval_announcer: tells workers how often to speak.
        monotonic: monotonic seconds.
    """

    signals: LoopSignals
    clock_store: ClockStore
    roster: Roster
    active_runs: ActiveRuns
    ticker: Ticker
    interval_announcer: IntervalAnnouncer
    monotonic: Clock = time.monotonic

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """The ledger has taken checkpoints in."""
        now = self.monotonic()
        for receipt in receipts:
            batch = receipt.batch
            self.roster.record_taken(batch)
            for checkpoint, verdict in zip(batch.checkpoints, receipt.verdicts, strict=True):
                if verdict == MessageVerdict.CLOSED:
                    self.roster.forget_lease(batch.worker, batch.incarnation, checkpoint.lease)
            for active in self.active_runs.find_named(batch):
                active.record_receipt(receipt, now)
        self.signals.wake()

    def handle_progress(self, heard: Sequence[Progress]) -> None:
        """Workers have reported progress."""
        self.clock_store.record_progress(heard, self.monotonic())
        # Before any lease expires: they say how far those had come who are gone.
        if self.active_runs.shared.records.record(record for progress in heard for record in progress.found):
            self.signals.sweep()
        if any(progress.stopping and not self.roster.is_leaving(progress.worker) for progress in heard):
            self.signals.sweep()  # it waits to hear that nothing is on its way to it
        if self.ticker.record(heard, self.monotonic()):
            self.interval_announcer.repeat_soon()  # it does not know the clock
            for progress in heard:
                self.active_runs.schedule_visit(progress.worker)
            self.signals.sweep()  # the leases of one that a new one has replaced are lost

    def handle_connect(self) -> None:
        """Ask workers to speak again: a new connection hears them, and they may have spoken unheard."""
        self.interval_announcer.repeat()
        self.signals.sweep()
