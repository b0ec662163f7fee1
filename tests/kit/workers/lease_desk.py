"""The coordinator's end of the queues, over the real broker: it deals leases as tests say, and keeps books.

It hears heartbeats, so it knows the process of each worker; it takes checkpoints as the ledger does, fails if
one can't be true, and confirms each.
"""

import time
from collections import deque
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.runs.local_run import wait_until
from tests.kit.workers.checkpoint_book import CheckpointBook, LeaseAccount
from tests.kit.workers.progress_ear import hear_workers
from tests.kit.workers.whole_share import build_whole_share

from oku_core.broker.celery_app import (
    CHECKPOINTS_QUEUE,
    build_app,
    build_lease_queue,
)
from oku_core.broker.sending import send_to_workers
from oku_core.messaging.codec import decode_checkpoints
from oku_core.messaging.lease import Lease, LeaseBatch, build_lease_id
from oku_core.messaging.order import Control, Stop
from oku_core.spec.spec import Spec

if TYPE_CHECKING:
    from oku_core.messaging.progress import Progress

RUN = "run"
_PATIENCE_S = 15.0


class LeaseDesk:
    """Works from `with` to its end.

    Args:
        broker_url: of the real broker.

    Attributes:
        heard: the newest progress of each worker, by name.
        is_confirming: whether checkpoints are confirmed.
    """

    def __init__(self, broker_url: str) -> None:
        self.app = build_app(broker_url, MESSAGE_KEY)
        self.book = CheckpointBook()
        self.heard: dict[str, Progress] = {}
        self._open = ExitStack()
        self.is_confirming = True
        self._count = 0
        self._finals: deque[LeaseAccount] = deque()
        self._seen: set[str] = set()

    def __enter__(self) -> Self:
        """Begin to listen."""
        self.heard = self._open.enter_context(hear_workers(self.app))
        connection = self._open.enter_context(self.app.connection_for_read())
        self._checkpoints = self._open.enter_context(connection.SimpleQueue(CHECKPOINTS_QUEUE))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._open.close()

    def find_incarnation(self, worker: str = "w") -> str:
        """The process of a worker, once it has said that it is there."""
        wait_until(lambda: worker in self.heard, _PATIENCE_S, f"{worker} speaks")
        return self.heard[worker].incarnation

    def build_lease(self, size: int, run: str = RUN, limit: int | None = None) -> Lease:
        """A new lease, all of which may be taken unless there is a limit."""
        self._count += 1
        start = 1000 * self._count
        return Lease(
            id=build_lease_id(run, self._count),
            run=run,
            ranges=[(start, start + size)],
            limit=size if limit is None else limit,
        )

    def build_batch(self, *leases: Lease, spec: Spec | None, worker: str = "w", **changes: Any) -> LeaseBatch:
        """A message with leases for a worker."""
        for lease in leases:
            self.book.open(lease)
        batch = LeaseBatch(
            run=leases[0].run,
            incarnation=self.find_incarnation(worker),
            leases=list(leases),
            start_by=time.time() + 60,
            spec=spec,
            share=build_whole_share(leases[0].run),
        )
        return msgspec.structs.replace(batch, **changes)

    def send(self, *leases: Lease, spec: Spec | None, worker: str = "w", **changes: Any) -> LeaseBatch:
        """Give leases to a worker; the message that was sent."""
        batch = self.build_batch(*leases, spec=spec, worker=worker, **changes)
        send_to_workers(self.app, [batch])
        return batch

    def stop(self, run: str = RUN, grace_s: float = 1.0) -> None:
        """Order an early end of all leases of a run."""
        send_to_workers(self.app, [Stop(run=run, up_to=self._count, grace_s=grace_s)])

    def control(self, worker: str = "w", **what: Any) -> None:
        """Tell a worker what was decided about its leases."""
        send_to_workers(self.app, [Control(incarnation=self.find_incarnation(worker), **what)])

    def let_go(self, worker: str = "w") -> None:
        """Tell a worker that is about to leave that nothing is on its way to it, once it has said so."""
        wait_until(lambda: self.heard[worker].stopping, _PATIENCE_S, f"{worker} says that it leaves")
        self.control(worker, may_leave=True)

    def receive(self, timeout_s: float = _PATIENCE_S) -> None:
        """Take the next message of checkpoints."""
        message = self._checkpoints.get(timeout=timeout_s)
        message.ack()
        batch = decode_checkpoints(self.app.signer, message.body)
        confirmed = self.book.take(batch)
        if self.is_confirming:
            send_to_workers(self.app, [Control(incarnation=batch.incarnation, confirmed=confirmed)])
        for checkpoint in batch.checkpoints:
            if checkpoint.is_final and checkpoint.lease not in self._seen:
                self._seen.add(checkpoint.lease)
                self._finals.append(self.book.accounts[checkpoint.lease])

    def receive_final(self, timeout_s: float = _PATIENCE_S) -> LeaseAccount:
        """The account of the next lease that is over."""
        deadline = time.monotonic() + timeout_s
        while not self._finals:
            self.receive(max(deadline - time.monotonic(), 0.01))
        return self._finals.popleft()

    def send_raw(self, body: bytes, worker: str = "w") -> None:
        """Put bytes into a worker's queue that are no task message."""
        with self.app.connection_for_write() as connection:
            connection.Producer().publish(
                body,
                exchange="",
                routing_key=build_lease_queue(self.find_incarnation(worker)).name,
                content_type="application/json",
                content_encoding="utf-8",
            )
