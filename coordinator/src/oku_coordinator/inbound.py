"""What comes in from the workers: taken in by a listener's thread, then passed on in the event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, CheckpointListener, ProgressListener
from oku_coordinator.ledger.storage.records import Receipt
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.workers.version_skew import VersionSkew
from oku_core.messaging.celery_app import App
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.progress import Progress
from oku_core.messaging.rejection import RejectedMessageError, RejectionLog
from oku_core.process.supervision import Supervisor

_log = logging.getLogger(__name__)

_LISTENER_ENDS_S = 5.0


class Rejections:
    """Messages that were dropped before they were read; from any thread.

    Args:
        metrics: where they are counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rejected = RejectionLog(_log, metrics.count_rejected)
        self._version_skew = VersionSkew()

    def note(self, error: RejectedMessageError) -> None:
        """A message was dropped."""
        if isinstance(error, OtherProtocolError):
            self._metrics.count_rejected(error.rejection)
            self._version_skew.note(error)
        else:
            self._rejected.note(error)

    def describe(self) -> Iterator[str]:
        """What was dropped lately, a line each."""
        yield from filter(None, (self._version_skew.describe(), self._rejected.describe()))


class Inbound:
    """Two listeners, one for checkpoints, one for progress.

    Args:
        app: the Celery application.
        supervisor: of their threads.
        take_in: keeps checkpoints durably and answers them, in a listener's thread; gives what was made of
            them.
        note_receipts: is told of what was made of them, in the event loop.
        note_progress: is told of progress, in the event loop.
        note_connected: is told that one of them listens on a new connection, in the event loop.
    """

    def __init__(
        self,
        app: App,
        supervisor: Supervisor,
        take_in: Callable[[Sequence[CheckpointBatch]], Sequence[Receipt]],
        note_receipts: Callable[[Sequence[Receipt]], None],
        note_progress: Callable[[Sequence[Progress]], None],
        note_connected: Callable[[], None] = lambda: None,
    ) -> None:
        self._take_in = take_in
        self._note_receipts = note_receipts
        self._note_progress = note_progress
        self._note_connected = note_connected
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
        receipts = self._take_in(batches)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_receipts, receipts)

    def _pass_on(self, heard: Sequence[Progress]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_progress, heard)

    def _announce(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_connected)
