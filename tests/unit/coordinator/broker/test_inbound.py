import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_coordinator.broker.celery_transport import CeleryInbound
from oku_coordinator.broker.inbound import Inbound, group_batches
from oku_coordinator.broker.listeners import CheckpointListener, ProgressListener
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageFault
from oku_core.broker.celery_app import build_app
from oku_core.messaging.checkpoint import Checkpoint, CheckpointBatch, Part
from oku_core.messaging.progress import Progress
from oku_core.process.supervision import Supervisor


class Coordinator:
    """Receives checkpoints and handles what is new; what happens is in `log`, with whether one may decode."""

    def __init__(self, inbound: Inbound) -> None:
        self.inbound = inbound
        self.log: list[tuple[str, bool]] = []
        self.is_full = False
        """Whether the ledger refuses what comes."""

    def record(self, what: str) -> None:
        """Something happens."""
        self.log.append((what, self.inbound.may_decode.is_set()))

    def receive(self, batches: Sequence[CheckpointBatch]) -> Sequence[Receipt]:
        """Receive checkpoints."""
        self.record("receive")
        if self.is_full:
            raise StorageError(StorageFault.DISK_FULL, "database or disk is full")
        return [Receipt(batch=batch) for batch in batches]

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Handle checkpoints, which are named by their workers."""
        self.record(f"handle {[receipt.batch.worker for receipt in receipts]}")

    def handle_progress(self, heard: Sequence[Progress]) -> None:
        """Nobody reports progress here."""

    def handle_connect(self) -> None:
        """Nobody connects here."""


@pytest.fixture
def inbound(monkeypatch: pytest.MonkeyPatch) -> Inbound:
    """Its listeners do not listen."""
    for listener in (CheckpointListener, ProgressListener):
        monkeypatch.setattr(listener, "start", lambda _: None)
    return CeleryInbound(build_app("redis://127.0.0.1:1/0", MESSAGE_KEY), Supervisor())


async def test_checkpoints_wait_until_the_loop_has_finished_what_it_is_doing(inbound: Inbound) -> None:
    """That includes what was to be done in its next step already."""
    inbound.start(coordinator := Coordinator(inbound), coordinator)
    log: list[str] = []

    def wait() -> None:
        inbound.wait_for_loop()
        log.append("it was free")

    asyncio.get_running_loop().call_soon(log.append, "something else")
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.05)
    log.append("it was busy")
    await asyncio.to_thread(thread.join)
    assert log == ["it was busy", "something else", "it was free"]


async def test_checkpoints_do_not_wait_for_ever(inbound: Inbound, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that does something long waits for them then."""
    monkeypatch.setattr("oku_coordinator.broker.inbound.LONGEST_TURN_S", 0.01)
    inbound.start(coordinator := Coordinator(inbound), coordinator)
    thread = threading.Thread(target=inbound.wait_for_loop)
    thread.start()
    thread.join(10.0)
    assert not thread.is_alive()


async def test_progress_is_decoded_while_checkpoints_wait_for_the_loop(
    inbound: Inbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not during their transactions, each of which waits. The loop handles what came of each."""
    inbound.start(coordinator := Coordinator(inbound), coordinator)
    monkeypatch.setattr(inbound, "wait_for_loop", lambda: coordinator.record("wait"))
    inbound.store([_build_batch(range(200), worker) for worker in ("w1", "w2")])
    await asyncio.sleep(0)
    assert coordinator.log == [
        ("wait", True), ("receive", False), ("wait", True), ("receive", False),
        ("handle ['w1']", True), ("handle ['w2']", True),
    ]  # fmt: skip


async def test_progress_is_decoded_when_checkpoints_cannot_be_stored(inbound: Inbound) -> None:
    """The listener keeps the messages and tries again."""
    inbound.start(coordinator := Coordinator(inbound), coordinator)
    coordinator.is_full = True
    with pytest.raises(StorageError):
        await asyncio.to_thread(inbound.store, [_build_batch(range(1))])
    assert coordinator.log == [("receive", False)]
    assert inbound.may_decode.is_set()


def test_checkpoints_of_very_many_accounts_are_received_in_several_transactions() -> None:
    """Each of at most 100 accounts, or of one batch, in the order of the batches."""
    batches = [_build_batch(range(begin, end)) for begin, end in ((0, 1), (1, 60), (40, 100), (99, 101))]
    assert list(group_batches(batches)) == [batches[:3], batches[3:]]
    large = [_build_batch(range(200)) for _ in range(2)]
    assert list(group_batches(large)) == [large[:1], large[1:]]


def test_so_are_those_of_very_many_workers() -> None:
    """Each of at most 500 parts, though all are of one account."""
    batches = [_build_batch(range(1)) for _ in range(501)]
    assert list(group_batches(batches)) == [batches[:500], batches[500:]]


def _build_batch(names: range, worker: str = "w1") -> CheckpointBatch:
    checkpoint = Checkpoint(
        lease="r1-1", sequence=1, done=0, end=0, parts=[Part(name=f"t{number}") for number in names]
    )
    return CheckpointBatch(worker=worker, incarnation="b1", checkpoints=[checkpoint])
