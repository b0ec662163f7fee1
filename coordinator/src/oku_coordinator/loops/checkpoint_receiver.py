"""Receives checkpoints: a transaction of the ledger, then an answer to each worker.

It runs in the thread of a listener, so that answers wait for nothing else.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oku_coordinator.active_run import ActiveRuns
from oku_coordinator.broker.sender import Broker
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import intake
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.order import Control
from oku_core.process.clock import Clock

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckpointReceiver:
    """Applies checkpoints to the ledger and answers them.

    Args:
        ledger: keeps what they say.
        broker: takes the answers.
        active_runs: say how far workers may go ahead, and which shares of their runs they have.
        metrics: count them.
        clock: Unix time.
        timer: seconds of any clock that nobody sets.
    """

    ledger: Ledger
    broker: Broker
    active_runs: ActiveRuns
    metrics: Metrics
    clock: Clock
    timer: Clock = time.monotonic

    def receive(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """Apply checkpoints to the ledger, answer and count them."""
        begun = self.timer()
        receipts = self._apply(batches)
        self.broker.send(build_controls(receipts, self.active_runs))
        verdicts = [verdict for receipt in receipts for verdict in receipt.verdicts]
        self.metrics.count_messages(verdicts, self.timer() - begun)
        return receipts

    def _apply(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """Apply batches in one transaction. A run that does not balance fails; the rest is tried again."""
        while True:
            try:
                now = self.clock()
                with self.ledger.change(now) as t:
                    return intake.take_in(t, batches, self.active_runs.allow, now)
            except BreachError as error:
                _log.exception("a run has failed", extra={"run": error.run})


def build_controls(receipts: Iterable[Receipt], active_runs: ActiveRuns) -> list[Control]:
    """Build the answers to workers: what is confirmed, limits, leases to end, and their shares of the run."""
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
