import threading
from collections.abc import Sequence

import msgspec
import pytest

from oku_coordinator.broker import checkpoint_inbox
from oku_coordinator.broker.checkpoint_inbox import CheckpointInbox
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch
from oku_core.messaging.codec import seal_checkpoints
from oku_core.messaging.signing import RejectedMessageError, Signer
from oku_core.process.supervision import Health

SIGNER = Signer(b"the key of these tests")


class Desk:
    """An inbox, and a ledger that may refuse."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.rejected: list[RejectedMessageError] = []
        self.fails = 0
        self.has_stored = threading.Event()
        health = Health("checkpoints", longest_pause_s=0.0)
        self.inbox = CheckpointInbox(SIGNER, self.rejected.append, health, self.store)

    def store(self, batches: Sequence[CheckpointBatch]) -> None:
        """Store checkpoints by their leases, unless the ledger refuses them."""
        if self.fails:
            self.fails -= 1
            raise OSError("the disk is full")
        self.stored += [batch.checkpoints[0].lease for batch in batches]
        self.has_stored.set()

    def put(self, lease: str) -> None:
        """A checkpoint arrives."""
        checkpoint = Checkpoint(lease=lease, sequence=1, done=0, end=0)
        batch = CheckpointBatch(worker="w", incarnation="b", checkpoints=[checkpoint])
        self.inbox.put(msgspec.json.encode(seal_checkpoints(SIGNER, batch)))


def test_all_that_waits_is_stored_before_the_end() -> None:
    """In order, and what is no checkpoint is dropped."""
    desk = Desk()
    for lease in ("a", "b"):
        desk.put(lease)
    desk.inbox.put(b"{}")
    desk.put("c")
    desk.inbox.start()
    assert desk.has_stored.wait(10)
    desk.inbox.end()
    desk.inbox.join(10)
    assert desk.stored == ["a", "b", "c"]
    assert len(desk.rejected) == 1


def test_checkpoints_wait_for_a_ledger_that_refuses_them() -> None:
    """Meanwhile the coordinator is behind."""
    desk = Desk()
    desk.fails = 1
    desk.put("a")
    assert desk.inbox.is_behind(float("inf"), 1.0)
    desk.inbox.start()
    assert desk.has_stored.wait(10)
    desk.inbox.end()
    desk.inbox.join(10)
    assert desk.stored == ["a"]
    assert not desk.inbox.is_behind(float("inf"), 1.0)


def test_more_than_the_bound_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message may be longer than the bound alone; its worker sends the others again."""
    monkeypatch.setattr(checkpoint_inbox, "MOST_BYTES", 100)
    desk = Desk()
    for lease in ("a", "b"):
        desk.put(lease)
    desk.inbox.start()
    assert desk.has_stored.wait(10)
    desk.inbox.end()
    desk.inbox.join(10)
    assert desk.stored == ["a"]
