"""What comes in from the workers: received in a listener's thread, then handled in the event loop.

While a thread has the ledger, the event loop may wait for it. Checkpoints come in one transaction at a time.
Each begins after the loop has finished what it was doing, or after a second: so a step of the loop that takes
less than that waits for one transaction at most.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from oku_coordinator.broker.listeners import LONGEST_PAUSE_S, CheckpointListener, ProgressListener
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_core.broker.celery_app import App
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Supervisor

_LISTENER_ENDS_S = 5.0
_MOST_PARTS = 500
_MOST_ACCOUNTS = 100
"""In one transaction. With many targets a worker reports hundreds of parts, each of an account that has to be
written; those of thousands of workers may all be of one."""
LONGEST_TURN_S = 1.0
"""How long each transaction of checkpoints waits for the event loop."""


class Receiver(Protocol):
    """Receives checkpoints in the thread of their listener."""

    def receive(self, batches: Sequence[CheckpointBatch]) -> Sequence[Receipt]:
        """Keep checkpoints durably and answer them; gives what was made of them."""


class Handler(Protocol):
    """Handles what is new, in the event loop."""

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """The ledger has taken checkpoints in."""

    def handle_progress(self, heard: Sequence[Progress]) -> None:
        """Workers have reported progress."""

    def handle_connect(self) -> None:
        """A listener listens on a new connection."""


class Inbound:
    """Two listeners, one for checkpoints, one for progress."""

    def __init__(self, app: App, supervisor: Supervisor) -> None:
        self._receiver: Receiver
        self._handler: Handler
        self._loop: asyncio.AbstractEventLoop
        self.may_decode = threading.Event()
        """Not set during a transaction of checkpoints."""
        self.may_decode.set()
        self.checkpoints = CheckpointListener(
            app, supervisor.enlist("checkpoints", LONGEST_PAUSE_S), self.store, self._announce
        )
        self.progress = ProgressListener(
            app,
            supervisor.enlist("progress", LONGEST_PAUSE_S),
            self._pass_on,
            self.may_decode,
            self._announce,
        )

    @property
    def is_connected(self) -> bool:
        """Whether the broker is within reach, and refuses no requests."""
        return self.checkpoints.is_connected and self.progress.is_connected and not self.refusal

    @property
    def refusal(self) -> str:
        """Why the broker refuses requests, in its own words; empty if it does not refuse any."""
        return self.checkpoints.refusal or self.progress.refusal

    def may_miss_messages(self, now: float, behind_s: float) -> bool:
        """Whether workers may have spoken unheard: there is no broker, or more waits than can be taken.

        Args:
            now: monotonic seconds.
            behind_s: how far behind a listener may be.
        """
        caught_up_at = min(self.progress.caught_up_at, self.checkpoints.caught_up_at)
        return not self.progress.is_connected or now - caught_up_at > behind_s

    def start(self, receiver: Receiver, handler: Handler) -> None:
        """Begin to listen; to be called in the running event loop."""
        self._receiver, self._handler = receiver, handler
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

    def wait_for_loop(self) -> None:
        """Wait in a thread until the event loop has finished what it is doing, for a second at most."""
        is_free = threading.Event()
        self._loop.call_soon_threadsafe(is_free.set)
        is_free.wait(LONGEST_TURN_S)

    def store(self, batches: Sequence[CheckpointBatch]) -> None:
        """Store checkpoints in the thread of their listener; the event loop handles what became of them."""
        for some in group_batches(batches):
            self.wait_for_loop()
            self.may_decode.clear()
            try:
                receipts = self._receiver.receive(some)
            finally:
                self.may_decode.set()
            self._loop.call_soon_threadsafe(self._handler.handle_receipts, receipts)

    def _pass_on(self, heard: Sequence[Progress]) -> None:
        self._loop.call_soon_threadsafe(self._handler.handle_progress, heard)

    def _announce(self) -> None:
        self._loop.call_soon_threadsafe(self._handler.handle_connect)


def group_batches(batches: Iterable[CheckpointBatch]) -> Iterator[list[CheckpointBatch]]:
    """Batches for one transaction each: as many as have few enough parts and accounts, and at least one."""
    group: list[CheckpointBatch] = []
    accounts: set[tuple[str, str]] = set()
    count = 0
    for batch in batches:
        parts = [part for checkpoint in batch.checkpoints for part in (*checkpoint.parts, *checkpoint.inner)]
        added = {(part.phase, part.name) for part in parts}
        if group and (count + len(parts) > _MOST_PARTS or len(accounts | added) > _MOST_ACCOUNTS):
            yield group
            group, accounts, count = [], set(), 0
        group.append(batch)
        accounts |= added
        count += len(parts)
    if group:
        yield group
