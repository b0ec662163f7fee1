"""A worker that sends no requests: the test decides what it says, and when, over the real broker."""

import itertools
import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty
from types import TracebackType
from typing import Any, Self

import msgspec
from kombu.entity import Queue
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.checkpoints import change_checkpoint
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.measured_time import Time
from oku_core.accounting.outcome import build_no_counts
from oku_core.broker.celery_app import (
    CHECKPOINT_TASK,
    CHECKPOINTS_QUEUE,
    PROGRESS_EVENT,
    build_app,
    build_control_queue,
    build_lease_queue,
)
from oku_core.broker.sending import send_checkpoints
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, LeaseFigures, Part
from oku_core.messaging.codec import decode_leases, decode_order, seal_progress
from oku_core.messaging.lease import Lease
from oku_core.messaging.order import Control
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.messaging.share import Settled, Share

_BEAT_S = 0.2
_SECOND = 1_700_000_000


class SimulatedWorker:
    """Lives from `with` to its end: it sends progress, and takes a lease when the test says so.

    Args:
        broker_url: of the real broker.
        name: of the worker.
    """

    def __init__(self, broker_url: str, name: str = "simulated") -> None:
        self.app = build_app(broker_url, MESSAGE_KEY)
        self.name = name
        self.incarnation = secrets.token_hex(4)
        self.leases: dict[str, Lease] = {}
        """Those that its progress names."""
        self._received: deque[Lease] = deque()
        self._controls: deque[Control] = deque()
        self._share: Share | None = None
        self._executed: set[str] = set()
        self._sequence = itertools.count(1)
        self._ending = threading.Event()
        self._heartbeat = threading.Thread(target=self._send_progress, daemon=True)

    def __enter__(self) -> Self:
        """Begin to live."""
        self._heartbeat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Be silent from now on."""
        self._ending.set()
        self._heartbeat.join()

    def take_lease(self, timeout_s: float = 10) -> Lease:
        """The next lease that was sent to this worker; its progress names it until the worker forgets it."""
        deadline = time.monotonic() + timeout_s
        while not self._received:
            try:
                body = self._receive(build_lease_queue(self.incarnation), _BEAT_S)
            except Empty:
                if time.monotonic() > deadline:
                    raise
                self._read_control(_BEAT_S / 10)  # it may wait for this worker to settle on its share
                continue
            batch = decode_leases(self.app.signer, body[0][0])
            self._share = batch.share or self._share
            for lease in batch.leases:
                if lease.id not in self.leases and lease.id not in self._executed:
                    self.leases[lease.id] = lease
                    self._received.append(lease)
        return self._received.popleft()

    def take_control(self, timeout_s: float = 10) -> Control:
        """The next control that was sent to this worker, but for those that only have its share."""
        deadline = time.monotonic() + timeout_s
        while not self._controls:
            if time.monotonic() > deadline:
                raise Empty
            self._read_control(_BEAT_S)
        return self._controls.popleft()

    def _read_control(self, timeout_s: float) -> None:
        with suppress(Empty):
            body = self._receive(build_control_queue(self.incarnation), timeout_s)
            control = decode_order(self.app.signer, msgspec.json.encode(body))
            assert isinstance(control, Control)
            self._share = control.share or self._share
            if control != Control(incarnation=self.incarnation, share=control.share):
                self._controls.append(control)

    def build_checkpoint(self, lease: Lease, done: int | None = None, **changes: Any) -> Checkpoint:
        """The last checkpoint of a lease whose requests all got a 200 in a millisecond, but for `changes`.

        It covers all of the lease, or its first `done` positions.
        """
        length = lease.build_ranges().length
        done = length if done is None else done
        count = done - len(changes.get("in_flight", ()))
        histogram = Histogram()
        for _ in range(count):
            histogram.record(1000)
        part = Part(
            outcomes=make_counts(count),
            statuses={"200": count} if count else {},
            bytes_received=13 * count,
            times={Time.LATENCY: histogram.build_latency()},
            per_second={_SECOND: make_counts(count)} if count else {},
        )
        checkpoint = Checkpoint(
            lease=lease.id,
            sequence=1,
            done=done,
            end=length,
            is_final=True,
            parts=[part] if count else [],
            figures=LeaseFigures(started_at=time.time() - 1, ended_at=time.time()),
        )
        return change_checkpoint(checkpoint, **changes)

    def send(self, *checkpoints: Checkpoint, **changes: Any) -> None:
        """Put checkpoints into the queue, each in a message of its own and in this order."""
        for checkpoint in checkpoints:
            batch = CheckpointBatch(worker=self.name, incarnation=self.incarnation, checkpoints=[checkpoint])
            send_checkpoints(self.app, msgspec.structs.replace(batch, **changes))

    def execute(self, lease: Lease) -> None:
        """Send the last checkpoint of a lease that was taken."""
        self.send(self.build_checkpoint(lease))
        self._executed.add(lease.id)
        self.forget(lease)

    def execute_next(self, count: int) -> None:
        """Take so many leases, and execute each."""
        for _ in range(count):
            self.execute(self.take_lease())

    def forget(self, lease: Lease) -> None:
        """Name a lease in progress no more."""
        self.leases.pop(lease.id, None)

    def send_anything(self, document: Any) -> None:
        """Put something else into the queue of checkpoints."""
        self.app.send_task(CHECKPOINT_TASK, args=[document], queue=CHECKPOINTS_QUEUE)

    def send_raw(self, body: bytes, content_type: str) -> None:
        """Put bytes into the queue of checkpoints that are no task message."""
        with self.app.connection_for_write() as connection:
            connection.Producer().publish(
                body, routing_key=CHECKPOINTS_QUEUE, content_type=content_type, content_encoding="utf-8"
            )

    def _receive(self, queue: Queue, timeout_s: float) -> Any:
        with self.app.connection_for_read() as connection, connection.SimpleQueue(queue) as messages:
            message = messages.get(timeout=timeout_s)
            message.ack()
        return message.payload

    def _send_progress(self) -> None:
        with self.app.connection_for_write() as connection:
            dispatcher = self.app.events.Dispatcher(connection)
            while not self._ending.wait(_BEAT_S):
                progress = Progress(
                    worker=self.name,
                    incarnation=self.incarnation,
                    at=time.time(),
                    sequence=next(self._sequence),
                    settled=[Settled(self._share.run, self._share.number)] if self._share else [],
                    leases={
                        lease.id: LeaseProgress(0, lease.build_ranges().length, build_no_counts())
                        for lease in tuple(self.leases.values())
                    },
                )
                dispatcher.send(PROGRESS_EVENT, progress=seal_progress(self.app.signer, progress))
