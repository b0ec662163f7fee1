"""What comes in from the workers: stored in a listener's thread, then passed on in the event loop."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, ProgressListener, ReportListener
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.workers.version_skew import VersionSkew
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.messaging.celery_app import App
from oku_core.messaging.codec import OtherProtocolError
from oku_core.messaging.lease import Message, Report
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
    """Two listeners, one for claims and reports, one for progress.

    Args:
        app: the Celery application.
        supervisor: of their threads.
        store: keeps a batch of messages durably, in a listener's thread; gives the reports that count.
        note_reports: is told of these, in the event loop.
        note_progress: is told of progress, in the event loop.
        note_connected: is told that one of them listens on a new connection, in the event loop.
    """

    def __init__(
        self,
        app: App,
        supervisor: Supervisor,
        store: Callable[[Sequence[Message]], Sequence[Report]],
        note_reports: Callable[[Sequence[Report]], None],
        note_progress: Callable[[Sequence[Progress]], None],
        note_connected: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._note_reports = note_reports
        self._note_progress = note_progress
        self._note_connected = note_connected
        self._loop: asyncio.AbstractEventLoop | None = None
        may_decode = threading.Event()
        may_decode.set()
        self.reports = ReportListener(
            app, supervisor.enlist("reports", LONGEST_PAUSE_S), self._take_in, may_decode, self._announce
        )
        self.progress = ProgressListener(
            app, supervisor.enlist("progress", LONGEST_PAUSE_S), self._pass_on, may_decode, self._announce
        )

    @property
    def is_connected(self) -> bool:
        """Whether the broker is within reach."""
        return self.reports.is_connected and self.progress.is_connected

    def is_deaf(self, now: float, behind_s: float) -> bool:
        """Whether workers may have spoken unheard: there is no broker, or more waits than can be taken.

        Args:
            now: monotonic seconds.
            behind_s: how far behind a listener may be.
        """
        caught_up_at = min(self.progress.caught_up_at, self.reports.caught_up_at)
        return not self.progress.is_connected or now - caught_up_at > behind_s

    def start(self) -> None:
        """Begin to listen; to be called in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.reports.start()
        self.progress.start()

    def end(self) -> None:
        """Let the listeners end; returns at once."""
        self.reports.end()
        self.progress.end()

    async def wait(self) -> None:
        """Wait until the last batch of reports is stored."""
        await asyncio.to_thread(self.reports.join, _LISTENER_ENDS_S)

    def _take_in(self, messages: Sequence[Message]) -> None:
        reports = self._store(messages)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_reports, reports)

    def _pass_on(self, heard: Sequence[Progress]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_progress, heard)

    def _announce(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._note_connected)


def store_messages(
    ledger: Ledger, metrics: Metrics, clock: Callable[[], float], messages: Sequence[Message]
) -> list[Report]:
    """Apply messages to the ledger and count them; gives the reports that were accounted."""
    begun = time.monotonic()
    verdicts = take_in(ledger, messages, clock())
    metrics.count_messages(verdicts, time.monotonic() - begun)
    return [
        message
        for message, verdict in zip(messages, verdicts, strict=True)
        if isinstance(message, Report) and verdict == MessageVerdict.ACCOUNTED
    ]


def take_in(ledger: Ledger, messages: Sequence[Message], now: float) -> list[MessageVerdict]:
    """Apply messages. A run that does not balance fails and takes no more; the other runs get theirs."""
    while True:
        try:
            return ledger.leases.apply(messages, now)
        except BreachError as error:
            _log.exception("a run has failed", extra={"run": error.run})
