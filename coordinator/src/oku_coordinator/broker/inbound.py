"""Messages from the workers: received and stored in a thread, handled in the event loop.

The event loop may wait for the ledger while a thread uses it. Checkpoints are stored one transaction at a
time. Each transaction starts after the loop has finished its current step, or after a second. So a step of
the loop that takes less than a second waits for at most one transaction.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.progress import Progress

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


class Inbound(ABC):
    """The way from the workers to the ledger and to the event loop."""

    def __init__(self) -> None:
        self._receiver: Receiver
        self._handler: Handler
        self._loop: asyncio.AbstractEventLoop
        self.may_decode = threading.Event()
        """Cleared during a transaction of checkpoints."""
        self.may_decode.set()

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether messages of workers can arrive."""

    @property
    @abstractmethod
    def refusal(self) -> str:
        """Why the broker refuses requests, in its own words; empty if it accepts them."""

    @abstractmethod
    def may_miss_messages(self, now: float, behind_s: float) -> bool:
        """Whether messages of workers may be unread.

        Args:
            now: monotonic seconds.
            behind_s: how far behind the reader of messages may be.
        """

    def start(self, receiver: Receiver, handler: Handler) -> None:
        """Start listening; call it in the running event loop."""
        self._receiver, self._handler = receiver, handler
        self._loop = asyncio.get_running_loop()
        self._listen()

    @abstractmethod
    def _listen(self) -> None:
        """Begin to receive."""

    @abstractmethod
    def end(self) -> None:
        """Receive nothing more; returns at once."""

    @abstractmethod
    async def wait(self) -> None:
        """Wait until the last checkpoints are stored."""

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

    def pass_on(self, reports: Sequence[Progress]) -> None:
        """Hand progress to the event loop, from any thread."""
        self._loop.call_soon_threadsafe(self._handler.handle_progress, reports)

    def announce(self) -> None:
        """Report a new connection to the event loop, from any thread."""
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
