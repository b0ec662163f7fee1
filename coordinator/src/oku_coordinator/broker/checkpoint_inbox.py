"""The inbox of checkpoints that come by a socket: the event loop fills it, a thread stores them.

All that wait are stored together. While the ledger cannot be written they stay here, up to a bound; beyond it
the newest are dropped, and their workers send them again.
"""

import threading
import time
from collections.abc import Callable, Sequence

from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.codec import LONGEST_MESSAGE, open_checkpoints, read_sealed
from oku_core.messaging.signing import Reject, RejectedMessageError, Signer
from oku_core.process.supervision import Health, keep_going

MOST_BYTES = 2 * LONGEST_MESSAGE
"""How much may wait."""


StoreCheckpoints = Callable[[Sequence[CheckpointBatch]], None]


class CheckpointInbox(threading.Thread):
    """Stores checkpoints from `start` to `end`.

    Args:
        store: stores messages durably; if it raises, they wait here.
    """

    def __init__(
        self,
        signer: Signer,
        reject: Reject,
        health: Health,
        store: StoreCheckpoints,
    ) -> None:
        super().__init__(name=health.name, daemon=True)
        self._signer = signer
        self._reject = reject
        self._health = health
        self._store = store
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._since = 0.0
        self._unstored: list[CheckpointBatch] = []
        self._ending = threading.Event()

    def run(self) -> None:
        """Store until `end`, through every failure of the ledger."""
        keep_going(self._health, self._store_all, self._ending)

    def put(self, body: bytes) -> None:
        """Add a message; it is dropped if too much waits."""
        with self._changed:
            if self._waiting and self._bytes + len(body) > MOST_BYTES:
                return
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(body)
            self._bytes += len(body)
            self._changed.notify()

    def is_behind(self, now: float, behind_s: float) -> bool:
        """Whether a message has waited for longer than `behind_s`; `now` is in monotonic seconds."""
        with self._changed:
            return bool(self._waiting or self._unstored) and now - self._since > behind_s

    def end(self) -> None:
        """Store the waiting messages, and no more; returns at once."""
        self._ending.set()
        with self._changed:
            self._changed.notify()

    def _store_all(self) -> None:
        while bodies := self._take():
            self._unstored += [batch for body in bodies if (batch := self._open(body)) is not None]
            self._store_unstored()

    def _store_unstored(self) -> None:
        if self._unstored:
            self._store(self._unstored)
            self._unstored = []
        self._health.record_success()

    def _take(self) -> list[bytes]:
        """Wait for messages; none are left once it has ended."""
        if self._unstored:
            self._store_unstored()
        with self._changed:
            while not self._waiting and not self._ending.is_set():
                self._changed.wait()
            bodies, self._waiting, self._bytes = self._waiting, [], 0
            return bodies

    def _open(self, body: bytes) -> CheckpointBatch | None:
        try:
            return open_checkpoints(self._signer, read_sealed(body))
        except RejectedMessageError as error:
            self._reject(error)
            return None
