"""Handles messages of workers in the event loop: roster, leases, ticks and watches follow them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from oku_coordinator.active_run import ActiveRuns, Installation
from oku_coordinator.clock.clock_store import ClockStore
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.loops.ticker import Ticker
from oku_coordinator.workers.repeated_orders import IntervalAnnouncer
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.messaging.progress import Progress
from oku_core.process.clock import Clock


@dataclass
class MessageHandler:
    """Handles receipts of checkpoints, and progress.

    Args:
        installation: the roster, and the signals that begin a round of the main loop.
        active_runs: the runs that have their turn.
        ticker: makes ticks of progress.
        clock_store: may learn the clock of runs from workers.
        interval_announcer: tells workers how often to speak.
        monotonic: monotonic seconds.
    """

    installation: Installation
    active_runs: ActiveRuns
    ticker: Ticker
    clock_store: ClockStore
    interval_announcer: IntervalAnnouncer
    monotonic: Clock = time.monotonic

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """The ledger has taken checkpoints in."""
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

    def handle_progress(self, heard: Sequence[Progress]) -> None:
        """Workers have reported progress."""
        signals, roster = self.installation.signals, self.installation.roster
        self.clock_store.record_progress(heard, self.monotonic())
        # Before any lease expires: they say how far those had come who are gone.
        if self.installation.records.record(record for progress in heard for record in progress.found):
            signals.sweep()
        if any(progress.stopping and not roster.is_leaving(progress.worker) for progress in heard):
            signals.sweep()  # it waits to hear that nothing is on its way to it
        if self.ticker.record(heard, self.monotonic()):
            self.interval_announcer.repeat_soon()  # it does not know the clock
            for progress in heard:
                self.active_runs.schedule_visit(progress.worker)
            signals.sweep()  # the leases of one that a new one has replaced are lost

    def handle_connect(self) -> None:
        """Ask workers to speak again: a new connection hears them, and they may have spoken unheard."""
        self.interval_announcer.repeat()
        self.installation.signals.sweep()
