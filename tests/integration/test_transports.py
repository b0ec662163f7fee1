"""The contract of the two transports between coordinator and workers: Celery over a broker, and a socket."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.coordinators.coordinator import run_coordinator
from tests.kit.runs.account import assert_completed
from tests.kit.runs.local_run import wait_until as wait_for
from tests.kit.servers.delay_server import Start
from tests.kit.workers.transport_peer import INCARNATION, TransportPeer
from tests.kit.workers.worker_process import run_worker

from oku_coordinator.broker.coordinator_transport import build_coordinator_transport
from oku_coordinator.ledger.storage.lease_records import Receipt
from oku_coordinator.ledger.storage.storage_health import StorageError, StorageFault
from oku_coordinator.settings import CoordinatorSettings
from oku_core.broker.socket_url import build_socket_url
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.lease import Lease, LeaseBatch
from oku_core.messaging.order import Control, Outbound, Stop
from oku_core.messaging.progress import Progress
from oku_core.messaging.signing import RejectedMessageError, Signer
from oku_core.process.supervision import Supervisor

_PATIENCE_S = 20.0
FOREIGN_KEY = b"the key of somebody else"


@pytest.fixture(params=["socket", "valkey"])
def broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of each transport."""
    if request.param == "socket":
        yield build_socket_url(tmp_path / "s")
    else:
        with run_broker(tmp_path) as url:
            yield url


class CoordinatorEnd:
    """The coordinator's end of a transport, which records what arrives."""

    def __init__(self, broker_url: str, folder: Path) -> None:
        self.stored: list[str] = []
        self.heard: list[str] = []
        self.rejected: list[RejectedMessageError] = []
        self.connects = 0
        self.is_full = False
        """Whether the ledger refuses what comes."""
        settings = CoordinatorSettings(
            broker_url=broker_url, message_key=MESSAGE_KEY, data_dir=folder, token="t"
        )
        transport = build_coordinator_transport(settings, Signer(MESSAGE_KEY), self.rejected.append)
        self.inbound = transport.build_inbound(Supervisor())
        self._broker = transport.build_broker(self.inbound)

    def receive(self, batches: Sequence[CheckpointBatch]) -> Sequence[Receipt]:
        """Store checkpoints by their leases."""
        if self.is_full:
            raise StorageError(StorageFault.DISK_FULL, "database or disk is full")
        self.stored += [each.lease for batch in batches for each in batch.checkpoints]
        return [Receipt(batch=batch) for batch in batches]

    def handle_receipts(self, receipts: Sequence[Receipt]) -> None:
        """They have been recorded."""

    def handle_progress(self, reports: Sequence[Progress]) -> None:
        """Record progress by the workers."""
        self.heard += [progress.worker for progress in reports]

    def handle_connect(self) -> None:
        """Count connections."""
        self.connects += 1

    def send(self, *messages: Outbound) -> None:
        """Send messages to the peer."""
        self._broker.send(messages)

    async def meet(self, peer: TransportPeer) -> None:
        """Wait until messages pass in both directions."""
        await asyncio.to_thread(peer.wait_for, "ready")
        await wait_until(lambda: self.inbound.is_connected)
        async with asyncio.timeout(_PATIENCE_S):
            while "hello" not in self.heard:
                peer.ask("progress", "hello")
                await asyncio.sleep(0.2)

    async def end(self) -> None:
        """End as a coordinator does."""
        self.inbound.end()
        await self.inbound.wait()
        await asyncio.to_thread(self._broker.end, 1.0)


@asynccontextmanager
async def serving(broker_url: str, folder: Path) -> AsyncIterator[CoordinatorEnd]:
    """Runs the coordinator's end until the end of the block."""
    coordinator = CoordinatorEnd(broker_url, folder)
    coordinator.inbound.start(coordinator, coordinator)
    try:
        yield coordinator
    finally:
        await coordinator.end()


async def wait_until(condition: object, timeout_s: float = _PATIENCE_S) -> None:
    """Poll until a condition holds."""
    assert callable(condition)
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  # other threads and processes have no event
            await asyncio.sleep(0.02)


async def collect(peer: TransportPeer, kind: str, count: int) -> list[str]:
    """The names of the next messages of a kind."""
    found: list[str] = []
    while len(found) < count:
        what, *names = await asyncio.to_thread(peer.next)
        if what == kind:
            found += names
    return found


def build_leases(run: str) -> LeaseBatch:
    """A message of one lease for the peer."""
    lease = Lease(id=f"{run}.000000001.aa", run=run, ranges=[(0, 9)], limit=4)
    return LeaseBatch(run=run, incarnation=INCARNATION, leases=[lease], start_by=time.time() + 60, spec=None)


async def test_messages_of_a_kind_arrive_once(broker_url: str, tmp_path: Path) -> None:
    """As long as nothing breaks, in both directions; the threads that talk to a broker keep no order."""
    names = [f"r{number:03}" for number in range(100)]
    async with serving(broker_url, tmp_path) as coordinator:
        with TransportPeer(broker_url) as peer:
            await coordinator.meet(peer)
            for name in names:
                coordinator.send(build_leases(name))
                peer.ask("checkpoint", name)
            assert sorted(await collect(peer, "leases", len(names))) == names
            coordinator.send(*(Stop(run=name, up_to=1, grace_s=1.0) for name in names))
            assert sorted(await collect(peer, "stop", len(names))) == names
            await wait_until(lambda: len(coordinator.stored) >= len(names))
            assert sorted(coordinator.stored) == names
            coordinator.send(Control(incarnation="another", confirmed={"a": 1}))
            coordinator.send(Control(incarnation=INCARNATION, confirmed={"b": 1}))
            assert await collect(peer, "control", 1) == ["b"]
            assert coordinator.rejected == []


async def test_nothing_of_a_stranger_is_taken(broker_url: str, tmp_path: Path) -> None:
    """A process with another key sends and receives nothing, and what it sends is counted."""
    async with serving(broker_url, tmp_path) as coordinator:
        with TransportPeer(broker_url, FOREIGN_KEY) as stranger, TransportPeer(broker_url) as peer:
            await coordinator.meet(peer)
            stranger.ask("checkpoint", "forged")
            stranger.ask("progress", "forged")
            await wait_until(lambda: bool(coordinator.rejected))
            coordinator.send(Stop(run="r1", up_to=1, grace_s=1.0))
            assert await collect(peer, "stop", 1) == ["r1"]
            peer.ask("checkpoint", "true")
            await wait_until(lambda: "true" in coordinator.stored)
            assert {str(error.rejection) for error in coordinator.rejected} == {"forged"}
            assert coordinator.stored == ["true"]
            assert set(coordinator.heard) == {"hello"}
            while (arrived := stranger.find_next(0.5)) is not None:
                assert arrived[0] in {"connected", "lost", "ready", "rejected", "failed"}


async def test_a_worker_that_does_not_read_holds_nothing_up(broker_url: str, tmp_path: Path) -> None:
    """Messages to it wait or get lost; it gets new ones once it reads again."""
    large = Control(incarnation=INCARNATION, confirmed={f"lease-{number}": 1 for number in range(20_000)})
    async with serving(broker_url, tmp_path) as coordinator:
        with TransportPeer(broker_url) as peer:
            await coordinator.meet(peer)
            os.kill(peer.process.pid, signal.SIGSTOP)
            for _ in range(100):
                began = time.monotonic()
                coordinator.send(large)
                await asyncio.sleep(0)
                assert time.monotonic() - began < 1.0
            os.kill(peer.process.pid, signal.SIGCONT)
            arrived: list[str] = []
            async with asyncio.timeout(_PATIENCE_S):
                while "stop" not in arrived:
                    coordinator.send(Stop(run="r1", up_to=1, grace_s=1.0))
                    while (found := await asyncio.to_thread(peer.find_next, 0.2)) is not None:
                        arrived.append(found[0])
            assert len(arrived) < 100


async def test_checkpoints_that_cannot_be_stored_are_kept(broker_url: str, tmp_path: Path) -> None:
    """They are stored when the ledger can be written again, though their worker sends them once."""
    async with serving(broker_url, tmp_path) as coordinator:
        with TransportPeer(broker_url) as peer:
            await coordinator.meet(peer)
            coordinator.is_full = True
            for name in ("a", "b"):
                peer.ask("checkpoint", name)
            await asyncio.sleep(0.5)
            assert coordinator.stored == []
            coordinator.is_full = False
            await wait_until(lambda: {*coordinator.stored} == {"a", "b"})


async def test_a_worker_finds_the_next_coordinator(broker_url: str, tmp_path: Path) -> None:
    """It connects again by itself, and messages pass in both directions."""
    with TransportPeer(broker_url) as peer:
        async with serving(broker_url, tmp_path) as coordinator:
            await coordinator.meet(peer)
        async with serving(broker_url, tmp_path) as coordinator:
            async with asyncio.timeout(_PATIENCE_S):
                while "again" not in coordinator.heard or "again" not in coordinator.stored:
                    peer.ask("progress", "again")
                    peer.ask("checkpoint", "again")
                    await asyncio.sleep(0.2)
            coordinator.send(Stop(run="r1", up_to=1, grace_s=1.0))
            assert await collect(peer, "stop", 1) == ["r1"]


async def test_both_ends_end_quickly(broker_url: str, tmp_path: Path) -> None:
    """Though nothing arrives that could wake them."""
    coordinator = CoordinatorEnd(broker_url, tmp_path)
    coordinator.inbound.start(coordinator, coordinator)
    with TransportPeer(broker_url) as peer:
        await coordinator.meet(peer)
        began = time.monotonic()
        peer.ask("end")
        assert await asyncio.to_thread(peer.process.wait, _PATIENCE_S) == 0
        await coordinator.end()
        assert time.monotonic() - began < 3.0


def test_workers_of_a_real_coordinator_join_and_leave(broker_url: str, tmp_path: Path) -> None:
    """One that leaves in order sends nothing twice, and a killed one costs time alone."""
    servers = Start(tmp_path)
    try:
        url = servers("--delay", "20ms").url
        with (
            run_coordinator(broker_url, tmp_path / "data", "--worker-timeout", "3s") as api,
            run_worker(broker_url, name="w1", log=tmp_path / "w1.log") as first,
        ):
            run = api.submit(requests=20_000, concurrency=20, url=f"{url}/{{i}}")
            wait_for(lambda: api.summary(run)["accounted"] > 100, 30, "the first works")
            with run_worker(broker_url, name="w2", log=tmp_path / "w2.log") as second:
                wait_for(lambda: len(api.summary(run)["workers"]) == 2, 30, "both work")
                first.terminate()
                assert first.wait(20) == 0
                assert api.summary(run)["resent_at_most"] == 0
                second.kill()
                with run_worker(broker_url, name="w3", log=tmp_path / "w3.log"):
                    summary = api.wait_for_state(run, "completed", 60)
    finally:
        servers.end()
    assert_completed(summary)
