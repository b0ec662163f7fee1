"""What comes in from the workers: received in a listener's thread, then handled in the event loop.

Checkpoints are received by one transaction of the ledger, and each worker is answered. That happens in the
thread of their listener, so that answers wait for nothing else.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, CheckpointListener, ProgressListener
from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import BreachError, Receipt
from oku_coordinator.message_handler import MessageHandler
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.workers.version_skew import VersionSkew
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.broker.celery_app import App
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.order import Control
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import RejectedMessageError, RejectionLog
from oku_core.process.supervision import Supervisor

_log = logging.getLogger(__name__)

_LISTENER_ENDS_S = 5.0
_MEANINGLESS = frozenset(
    {MessageVerdict.LATE, MessageVerdict.FOREIGN, MessageVerdict.UNTRUE, MessageVerdict.UNKNOWN}
)


class Rejections:
    """Messages that were dropped before they were read; from any thread.

    Args:
        metrics: where they are counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rejected = RejectionLog(_log, metrics.count_rejected)
        self._version_skew = VersionSkew()

    def record(self, error: RejectedMessageError) -> None:
        """A message was dropped."""
        if isinstance(error, OtherProtocolError):
            self._metrics.count_rejected(error.rejection)
            self._version_skew.record(error)
        else:
            self._rejected.note(error)

    def describe(self) -> Iterator[str]:
        """What was dropped lately, a line each."""
        yield from filter(None, (self._version_skew.describe(), self._rejected.describe()))


@dataclass(frozen=True, kw_only=True)
class CheckpointReceiver:
    """Applies checkpoints to the ledger and answers them.

    Args:
        ledger: keeps what they say.
        pace: says how far workers may go ahead of them.
        broker: takes the answers.
        shares: say which share of the run each worker has.
        metrics: count them.
        clock: Unix time.
        timer: seconds of any clock that nobody sets.
    """

    ledger: Ledger
    pace: Pace
    broker: Broker
    shares: Shares
    metrics: Metrics
    clock: Callable[[], float]
    timer: Callable[[], float] = time.monotonic

    def receive(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """Apply checkpoints to the ledger, answer and count them; gives what was made of them."""
        begun = self.timer()
        receipts = self._apply(batches)
        self.broker.send_controls(build_controls(receipts, self.shares))
        verdicts = [verdict for receipt in receipts for verdict in receipt.verdicts]
        self.metrics.count_messages(verdicts, self.timer() - begun)
        return receipts

    def _apply(self, batches: Sequence[CheckpointBatch]) -> list[Receipt]:
        """A run that does not balance fails and takes no more; the other runs get theirs."""
        while True:
            try:
                return self.ledger.leases.apply(batches, self.pace.allow, self.clock())
            except BreachError as error:
                _log.exception("a run has failed", extra={"run": error.run})


class Inbound:
    """Two listeners, one for checkpoints, one for progress.

    Args:
        app: the Celery application.
        supervisor: of their threads.
        receiver: keeps checkpoints durably and answers them, in a listener's thread.
        handler: handles what is new, in the event loop.
    """

    def __init__(
        self, app: App, supervisor: Supervisor, receiver: CheckpointReceiver, handler: MessageHandler
    ) -> None:
        self._receiver = receiver
        self._handler = handler
        self._loop: asyncio.AbstractEventLoop | None = None
        may_decode = threading.Event()
        may_decode.set()
        self.checkpoints = CheckpointListener(
            app, supervisor.enlist("checkpoints", LONGEST_PAUSE_S), self._store, may_decode, self._announce
        )
        self.progress = ProgressListener(
            app, supervisor.enlist("progress", LONGEST_PAUSE_S), self._pass_on, may_decode, self._announce
        )

    @property
    def is_connected(self) -> bool:
        """Whether the broker is within reach, and refuses no requests."""
        return self.checkpoints.is_connected and self.progress.is_connected and not self.refusal

    @property
    def refusal(self) -> str:
        """Why the broker refuses requests, in its own words; empty if it does not refuse any."""
        return self.checkpoints.refusal or self.progress.refusal

    def is_deaf(self, now: float, behind_s: float) -> bool:
        """Whether workers may have spoken unheard: there is no broker, or more waits than can be taken.

        Args:
            now: monotonic seconds.
            behind_s: how far behind a listener may be.
        """
        caught_up_at = min(self.progress.caught_up_at, self.checkpoints.caught_up_at)
        return not self.progress.is_connected or now - caught_up_at > behind_s

    def start(self) -> None:
        """Begin to listen; to be called in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.checkpoints.start()
        self.progress.start()

    def end(self) -> None:
        """Let the listeners end; returns at once."""
        self.checkpoints.end()
        self.progress.end()

    async def wait(self) -> None:
        """Wait until the last checkpoints are stored."""
        await asyncio.to_thread(self.checkpoints.join, _LISTENER_ENDS_S)

    def _store(self, batches: Sequence[CheckpointBatch]) -> None:
        receipts = self._receiver.receive(batches)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._handler.handle_receipts, receipts)

    def _pass_on(self, heard: Sequence[Progress]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._handler.handle_progress, heard)

    def _announce(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._handler.handle_connect)


def build_controls(receipts: Iterable[Receipt], shares: Shares) -> list[Control]:
    """What workers are to hear of their checkpoints, beside their shares of the run.

    Those that mean nothing to the ledger are answered as well, or their workers would repeat them for ever: a
    final one is confirmed, and a lease that goes on is ended.
    """
    controls = []
    for receipt in receipts:
        confirmed, ends = dict(receipt.confirmed), dict(receipt.ends)
        for checkpoint, verdict in zip(receipt.batch.checkpoints, receipt.verdicts, strict=True):
            if verdict not in _MEANINGLESS:
                continue
            if checkpoint.is_final:
                confirmed.setdefault(checkpoint.lease, checkpoint.sequence)
            else:
                ends.setdefault(checkpoint.lease, 0)
        if confirmed or receipt.limits or ends:
            to = receipt.batch.incarnation
            controls.append(
                Control(
                    incarnation=to,
                    confirmed=confirmed,
                    limits=receipt.limits,
                    ends=ends,
                    share=shares.find(to),
                )
            )
    return controls
