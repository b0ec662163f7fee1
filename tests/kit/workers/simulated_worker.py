"""A worker that sends no requests: the test decides what it says, and when, over the real broker."""

import itertools
import secrets
import threading
import time
from types import TracebackType
from typing import Any, Self

import msgspec
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_core.accounting.histogram import Histogram
from oku_core.messaging.celery_app import LEASES_QUEUE, PROGRESS_EVENT, REPORT_TASK, REPORTS_QUEUE, build_app
from oku_core.messaging.codec import decode_lease, seal_progress
from oku_core.messaging.lease import Claim, Lease, Report
from oku_core.messaging.progress import Progress
from oku_core.messaging.sending import send_message

_BEAT_S = 0.2


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
        self.leases: set[str] = set()
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
        """The next lease of the queue, acknowledged at once."""
        deadline = time.monotonic() + timeout_s
        with self.app.connection_for_read() as connection, connection.SimpleQueue(LEASES_QUEUE) as queue:
            message = queue.get(timeout=deadline - time.monotonic())
            message.ack()
        lease = decode_lease(self.app.signer, message.payload[0][0])
        self.leases.add(lease.id)
        return lease

    def build_claim(self, lease: Lease, execution: str) -> Claim:
        """The claim of a lease."""
        return Claim(
            lease=lease.id,
            execution=execution,
            worker=self.name,
            incarnation=self.incarnation,
            at=time.time(),
        )

    def build_report(self, lease: Lease, execution: str, **changes: Any) -> Report:
        """The report of a lease whose requests all got a 200 in a millisecond, but for `changes`."""
        count = lease.stop - lease.start
        histogram = Histogram()
        for _ in range(count):
            histogram.record(1000)
        report = Report(
            lease=lease.id,
            execution=execution,
            worker=self.name,
            incarnation=self.incarnation,
            start=lease.start,
            done=lease.stop,
            outcomes=[count, 0, 0, 0, 0, 0],
            statuses={"200": count},
            bytes_received=13 * count,
            latency=histogram.build_latency(),
            started_at=time.time() - 1,
            ended_at=time.time(),
        )
        return msgspec.structs.replace(report, **changes)

    def send(self, *messages: Claim | Report) -> None:
        """Put claims and reports into the queue, in this order."""
        for message in messages:
            send_message(self.app, message)

    def execute(self, lease: Lease, execution: str) -> None:
        """Claim and report a lease that was taken."""
        self.send(self.build_claim(lease, execution), self.build_report(lease, execution))
        self.leases.discard(lease.id)

    def execute_next(self, count: int) -> None:
        """Take so many leases, claim and report each."""
        for _ in range(count):
            self.execute(self.take_lease(), "e")

    def send_anything(self, document: Any) -> None:
        """Put something else into the queue of reports."""
        self.app.send_task(REPORT_TASK, args=[document], queue=REPORTS_QUEUE)

    def send_raw(self, body: bytes, content_type: str) -> None:
        """Put bytes into the queue of reports that are no task message."""
        with self.app.connection_for_write() as connection:
            connection.Producer().publish(
                body, routing_key=REPORTS_QUEUE, content_type=content_type, content_encoding="utf-8"
            )

    def _send_progress(self) -> None:
        with self.app.connection_for_write() as connection:
            dispatcher = self.app.events.Dispatcher(connection)
            while not self._ending.wait(_BEAT_S):
                progress = Progress(
                    worker=self.name,
                    incarnation=self.incarnation,
                    at=time.time(),
                    sequence=next(self._sequence),
                    leases={lease: [0] * 6 for lease in tuple(self.leases)},
                )
                dispatcher.send(PROGRESS_EVENT, progress=seal_progress(self.app.signer, progress))
