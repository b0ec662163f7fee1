"""The coordinator's side of the broker: leases and orders out, reports and progress in.

Two threads listen, one to the queue `reports`, one to Celery's events. Both outlive every loss of the
connection. Reports are taken in batches: one transaction of the ledger for all that is there, acknowledged
after its commit, so that a killed coordinator loses none.
"""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from celery import Celery
from kombu.exceptions import ContentDisallowed, DecodeError, OperationalError

from oku_core.lease import Lease, Message
from oku_core.messaging import (
    PROGRESS_EVENT,
    REPORTS_QUEUE,
    STOP_COMMAND,
    MalformedMessageError,
    build_reports_transport_options,
    decode_message,
    decode_progress,
    send_lease,
)
from oku_core.progress import Progress

_log = logging.getLogger(__name__)

_BATCH = 200
_POLL_S = 1.0
_RETRY_S = 0.5


class Broker:
    """Sends leases and orders. Its methods block and may be called from any thread."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send_lease(self, lease: Lease) -> bool:
        """Put a lease into the queue; False when the broker did not take it."""
        try:
            send_lease(self._app, lease)
        except (OperationalError, OSError) as error:
            _log.warning("the broker did not take lease %s: %s", lease.id, error)
            return False
        return True

    def send_stop(self, *, run: str | None, leases: Sequence[str], grace_s: float) -> None:
        """Tell all workers to stop with a run, or with single leases; may be lost."""
        try:
            self._app.control.broadcast(
                STOP_COMMAND, arguments={"run": run, "leases": list(leases), "grace_s": grace_s}
            )
        except (OperationalError, OSError) as error:
            _log.warning("the broker did not take the order to stop: %s", error)


class _Listener(threading.Thread):
    """A thread that connects, listens, and connects again."""

    def __init__(self, app: Celery, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._app = app
        self._ending = threading.Event()
        self.is_connected = False

    def run(self) -> None:
        """Listen until told to end, through every loss of the broker."""
        while not self._ending.is_set():
            try:
                self._listen()
            except Exception as error:  # noqa: BLE001  # whatever a transport raises, the answer is to connect again
                self.is_connected = False
                if not self._ending.is_set():
                    _log.warning("%s: %s: %s; connecting again", self.name, type(error).__name__, error)
                    self._ending.wait(_RETRY_S)

    def end(self) -> None:
        """Let the thread end; returns at once."""
        self._ending.set()

    @abstractmethod
    def _listen(self) -> None:
        """Connect and listen until told to end; raise when the connection is lost."""


class ReportListener(_Listener):
    """Takes claims and reports from the queue, in batches.

    Args:
        app: the application.
        take_in: stores a batch durably; what it raises leaves the batch in the queue.
    """

    def __init__(self, app: Celery, take_in: Callable[[Sequence[Message]], None]) -> None:
        super().__init__(app, "reports")
        self._take_in = take_in
        self._batch: list[Any] = []

    def _listen(self) -> None:
        options = self._app.conf.broker_transport_options | build_reports_transport_options(
            self._app.conf.broker_read_url or self._app.conf.broker_url
        )
        self._batch.clear()
        with self._app.connection_for_read(transport_options=options) as connection:
            connection.connect()
            channel = connection.channel()
            consumer = self._app.amqp.TaskConsumer(
                channel, queues=[self._app.amqp.queues[REPORTS_QUEUE]], accept=["json"]
            )
            # Decoded by us: what cannot be decoded must leave the queue, too.
            consumer.on_message = self._batch.append
            consumer.qos(prefetch_count=_BATCH)
            with consumer:
                self.is_connected = True
                while not self._ending.is_set():
                    self._fill_batch(connection)
                    self._finish_batch()

    def _fill_batch(self, connection: Any) -> None:
        wait_s = _POLL_S
        while len(self._batch) < _BATCH:
            try:
                connection.drain_events(timeout=wait_s)
            except TimeoutError:
                return
            wait_s = 0.002

    def _finish_batch(self) -> None:
        messages: list[Message] = []
        for envelope in self._batch:
            try:
                messages.append(decode_message(envelope.payload))
            except (MalformedMessageError, DecodeError, ContentDisallowed) as error:
                _log.warning("dropped a message that is none of ours: %s", error)
        if messages:
            self._take_in(messages)
        for envelope in self._batch:
            envelope.ack()
        self._batch.clear()


class ProgressListener(_Listener):
    """Takes the workers' progress from Celery's events.

    Args:
        app: the application.
        hear: called with each, in this thread.
    """

    def __init__(self, app: Celery, hear: Callable[[Progress], None]) -> None:
        super().__init__(app, "progress")
        self._hear = hear

    def _listen(self) -> None:
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(
                connection,
                handlers={PROGRESS_EVENT: self._on_event},
                routing_key=PROGRESS_EVENT.replace("-", "."),
            )
            with receiver.Consumer() as (listening, _, _):
                self.is_connected = True
                while not self._ending.is_set():
                    with suppress(TimeoutError):
                        listening.drain_events(timeout=_POLL_S)

    def _on_event(self, event: dict[str, Any]) -> None:
        try:
            self._hear(decode_progress(event.get("progress")))
        except MalformedMessageError as error:
            _log.warning("dropped an event that is none of ours: %s", error)
