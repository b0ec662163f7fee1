"""Messages from the workers: received in a listener's thread, handled in the event loop.

The event loop may wait for the ledger while a thread uses it. Checkpoints are stored one transaction at a
time. Each transaction starts after the loop has finished its current step, or after a second. So a step of
the loop that takes less than a second waits for at most one transaction.
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
"""The most accounts in one transaction: a worker with many targets updates hundreds at once."""
LONGEST_TURN_S = 1.0
"""How long each transaction of checkpoints waits for the event loop."""


class Receiver(Protocol):
    """Stores checkpoints, in the thread of their listener."""

    def receive(self, batches: Sequence[CheckpointBatch]) -> Sequence[Receipt]:
        """Store checkpoints durably, answer them, and return their receipts."""


class Handler(Protocol):
    """Handles new messages in the event loop."""

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Handle checkpoints that the ledger has stored."""

    def handle_progress(self, reports: Sequence[Progress]) -> None:
        """Handle progress of workers."""

    def handle_connect(self) -> None:
        """Handle a new connection of a listener."""


class Inbound:
    """Two listeners, one for checkpoints, one for progress."""

    def __init__(self, app: App, supervisor: Supervisor) -> None:
        self._receiver: Receiver
        self._handler: Handler
        self._loop: asyncio.AbstractEventLoop
        self.may_decode = threading.Event()
        """Cleared during a transaction of checkpoints."""
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
        """Whether the broker is reachable and accepts requests."""
        return self.checkpoints.is_connected and self.progress.is_connected and not self.refusal

    @property
    def refusal(self) -> str:
        """Why the broker refuses requests, in its own words; empty if it accepts them."""
        return self.checkpoints.refusal or self.progress.refusal

    def may_miss_messages(self, now: float, behind_s: float) -> bool:
        """Whether messages of workers may be unread: the broker is down, or a listener is behind.

        Args:
            now: monotonic seconds.
            behind_s: how far behind a listener may be.
        """
        caught_up_at = min(self.progress.caught_up_at, self.checkpoints.caught_up_at)
        return not self.progress.is_connected or now - caught_up_at > behind_s

    def start(self, receiver: Receiver, handler: Handler) -> None:
        """Start listening; call it in the running event loop."""
        self._receiver, self._handler = receiver, handler
        self._loop = asyncio.get_running_loop()
        self.checkpoints.start()
        self.progress.start()

    def end(self) -> None:
        """Stop the listeners; returns at once."""
        self.checkpoints.end()
        self.progress.end()

    async def wait(self) -> None:
        """Wait until the last checkpoints are stored."""
        await asyncio.to_thread(self.checkpoints.join, _LISTENER_ENDS_S)

    def wait_for_loop(self) -> None:
        """Wait, in a thread, until the event loop has finished its current step, for a second at most."""
        is_free = threading.Event()
        self._loop.call_soon_threadsafe(is_free.set)
        is_free.wait(LONGEST_TURN_S)

    def store(self, batches: Sequence[CheckpointBatch]) -> None:
        """Store checkpoints in the thread of their listener; the event loop handles the receipts."""
        for some in group_batches(batches):
            self.wait_for_loop()
            self.may_decode.clear()
            try:
                receipts = self._receiver.receive(some)
            finally:
                self.may_decode.set()
            self._loop.call_soon_threadsafe(self._handler.handle_receipts, receipts)

    def _pass_on(self, reports: Sequence[Progress]) -> None:
        self._loop.call_soon_threadsafe(self._handler.handle_progress, reports)

    def _announce(self) -> None:
        self._loop.call_soon_threadsafe(self._handler.handle_connect)


def group_batches(batches: Iterable[CheckpointBatch]) -> Iterator[list[CheckpointBatch]]:
    """Group batches by transaction: at least one batch each, within the limits on parts and accounts."""
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
