"""Receives checkpoints and progress of workers from the broker.

One thread listens to the queue `checkpoints`, another to Celery's events. Both survive every loss of the
connection. All waiting checkpoints are stored in one transaction of the ledger and acknowledged after its
commit, so a killed coordinator loses none.
"""

import logging
import math
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from celery.utils.threads import bound_open_broker_sockets

from oku_coordinator.ledger.storage.storage_health import StorageError
from oku_core.broker.celery_app import CHECKPOINTS_QUEUE, PROGRESS_EVENT, App
from oku_core.broker.transport import (
    CHECKPOINTS_POLL_S,
    acknowledge,
    build_checkpoints_transport_options,
    find_call_s,
    find_last_call_s,
    find_refusals,
    has_last_call_returned,
    read_json_body,
    take_many,
)
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import decode_checkpoints, decode_progress
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import RejectedMessageError
from oku_core.process.supervision import Health, describe_error, keep_going

_log = logging.getLogger(__name__)

_BATCH = 200
_POLL_S = 1.0
_LINGER_S = 0.05
"""A batch waits this long for more: a commit costs the same for one message as for many."""
_SHORT_LINGER_S = 0.005
_FEW = 5
"""After at most this many messages together, there is time to answer each at once."""
LONGEST_PAUSE_S = 1.0
"""Between two attempts to connect, during which runs stand still."""
_GATHER_S = 0.1
"""Events are received in bursts; between them, the interpreter is free for threads that wait for the broker.
"""
_MOST_EVENTS = 500
_SILENCE_S = 5.0
_SILENT_INTERVALS = 1.5
"""After a silence of this many heartbeat intervals, all workers have left or the connection is dead."""
_LEAVES_S = 1.0
_PUT_BACK_POLL_S = 0.02


class _Listener(threading.Thread):
    """A thread that connects, listens, and connects again.

    Args:
        on_connect: called in this thread after each connect.
    """

    def __init__(self, app: App, health: Health, on_connect: Callable[[], None]) -> None:
        super().__init__(name=health.name, daemon=True)
        self._app = app
        self._health = health
        self._on_connect = on_connect
        self._ending = threading.Event()
        self.is_connected = False
        self._refusals = find_refusals(app)
        self.refusal = ""
        """Why the broker refuses requests although it is up; empty if it accepts them."""
        self.caught_up_at = time.monotonic()
        """When the queue was last empty, in monotonic seconds."""

    def run(self) -> None:
        """Listen until `end`, through every loss of the broker."""
        keep_going(self._health, self._connect, self._ending)

    def end(self) -> None:
        """Stop the thread; returns at once."""
        self._ending.set()

    def _connect(self) -> None:
        try:
            self._listen()
        except StorageError:
            raise  # the ledger has failed, not the broker, which delivers the messages again
        except Exception as error:
            self.is_connected = False
            self.refusal = describe_error(error) if isinstance(error, self._refusals) else ""
            raise

    def _record_connect(self) -> None:
        self.is_connected = True
        self._on_connect()

    @abstractmethod
    def _listen(self) -> None:
        """Connect and listen until `end`; raise when the connection is lost."""


class CheckpointListener(_Listener):
    """Receives checkpoints from the queue, all waiting messages together.

    Args:
        store: stores messages durably; if it raises, they stay in the queue.
        on_connect: called after each connect.
    """

    def __init__(
        self,
        app: App,
        health: Health,
        store: Callable[[Sequence[CheckpointBatch]], None],
        on_connect: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(app, health, on_connect)
        self._store = store
        self._batch: list[Any] = []
        self._linger_s = _SHORT_LINGER_S

    def _listen(self) -> None:
        options = build_checkpoints_transport_options(self._app)
        self._batch.clear()
        with self._app.connection_for_read(transport_options=options) as connection:
            connection.connect()
            channel = connection.channel()
            channel.brpop_timeout = find_call_s(self._app)
            take_many(channel)
            consumer = self._app.amqp.TaskConsumer(
                channel, queues=[self._app.amqp.queues[CHECKPOINTS_QUEUE]], accept=["json"]
            )
            # Decoded here, because a message that cannot be decoded must leave the queue, too.
            consumer.on_message = self._batch.append
            consumer.qos(prefetch_count=_BATCH)
            with consumer:
                self._record_connect()
                while not self._ending.is_set():
                    self._fill_batch(connection)
                    self.refusal = ""
                    self._finish_batch()
                    self._health.record_success()
            _put_back(connection, channel, find_last_call_s(self._app))

    def _fill_batch(self, connection: Any) -> None:
        wait_s, deadline = CHECKPOINTS_POLL_S, math.inf
        while len(self._batch) < _BATCH:
            try:
                connection.drain_events(timeout=wait_s)
            except TimeoutError:
                self.caught_up_at = time.monotonic()
                return
            if deadline == math.inf:
                deadline = time.monotonic() + self._linger_s
            wait_s = deadline - time.monotonic()
            if wait_s <= 0:
                return

    def _finish_batch(self) -> None:
        self._linger_s = _LINGER_S if len(self._batch) > _FEW else _SHORT_LINGER_S
        messages: list[CheckpointBatch] = []
        for envelope in self._batch:
            try:
                messages.append(decode_checkpoints(self._app.signer, read_json_body(envelope)))
            except RejectedMessageError as error:
                self._app.reject(error)
        if messages:
            self._store(messages)
        acknowledge(self._batch)
        self._batch.clear()


class ProgressListener(_Listener):
    """Receives the workers' progress from Celery's events.

    Args:
        record: called with each burst, in this thread.
        may_decode: no event is decoded while it is cleared, which lasts one transaction at most. SQLite
            releases the interpreter at each statement, and a decoding thread returns it late: the transaction
            would take ten times as long.
        on_connect: called after each connect.
    """

    def __init__(
        self,
        app: App,
        health: Health,
        record: Callable[[Sequence[Progress]], None],
        may_decode: threading.Event,
        on_connect: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(app, health, on_connect)
        self._record = record
        self._may_decode = may_decode
        self._received: list[Progress] = []
        self._received_at = math.inf
        self._silence_s = _SILENCE_S

    def _listen(self) -> None:
        self._received_at = math.inf
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, routing_key=PROGRESS_EVENT.replace("-", "."))
            consumer = connection.Consumer(queues=[receiver.queue], no_ack=True, accept=["json"])
            consumer.on_message = self._on_event
            with consumer:
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.0)  # on Redis, this call subscribes
                self._record_connect()
                while not self._ending.is_set():
                    has_received = self._receive_burst(connection)
                    self.refusal = ""
                    self._health.record_success()
                    if time.monotonic() - self._received_at > self._silence_s:
                        _log.info("no worker has been heard for a while: reconnecting")
                        self.is_connected = False
                        # Otherwise it would wait forever for the broker to confirm the cancellation.
                        bound_open_broker_sockets(connection, _LEAVES_S)
                        return
                    if has_received:
                        self._ending.wait(_GATHER_S)

    def _receive_burst(self, connection: Any) -> bool:
        """Receive the events that arrive together; whether there were any."""
        wait_s = _POLL_S
        while not self._ending.is_set():
            try:
                # On Redis, one call receives everything in the queue and all that arrives meanwhile.
                connection.drain_events(timeout=wait_s)
            except TimeoutError:
                self.caught_up_at = time.monotonic()
                return self._hand_over()
            wait_s = 0.0
        return False

    def _hand_over(self) -> bool:
        received, self._received = self._received, []
        if received:
            self._received_at = time.monotonic()
            self._silence_s = max(
                _SILENCE_S, _SILENT_INTERVALS * max(progress.seconds for progress in received)
            )
            self._record(received)
        return bool(received)

    def _on_event(self, envelope: Any) -> None:
        try:
            self._may_decode.wait()
            self._received.append(decode_progress(self._app.signer, read_json_body(envelope)))
        except RejectedMessageError as error:
            self._app.reject(error)
        if len(self._received) >= _MOST_EVENTS:
            self._hand_over()


def _put_back(connection: Any, channel: Any, most_s: float) -> None:
    """Close a queue without a loss, after its consumer has stopped.

    On Redis, a blocking call may still be pending. A message that it receives returns to the queue while the
    channel is open; kombu closes the channel first and drops later messages.
    """
    until = time.monotonic() + most_s
    while not has_last_call_returned(channel) and (left_s := until - time.monotonic()) > 0:
        with suppress(TimeoutError):
            connection.drain_events(timeout=min(left_s, _PUT_BACK_POLL_S))
