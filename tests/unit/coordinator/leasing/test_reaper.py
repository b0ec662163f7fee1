import asyncio
from collections.abc import Callable, Sequence

import pytest

from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.telemetry.metrics import Metrics
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim
from oku_core.messaging.progress import Progress

Cut = Callable[..., LeaseRecord]


class BrokerTwin(Broker):
    """A broker in memory that remembers the orders to stop."""

    def __init__(self) -> None:
        self.stops: list[tuple[str | None, list[str], float]] = []

    def send_stop(self, *, run: str | None, up_to: int = 0, leases: Sequence[str], grace_s: float) -> None:
        """Take an order to stop."""
        assert up_to == 0
        self.stops.append((run, list(leases), grace_s))


class World:
    """A reaper with what it looks at; the worker timeout is 10 s."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.roster = Roster(10.0)
        self.metrics = Metrics()
        self.lost: list[tuple[str, list[str]]] = []
        self.watch = Reaper(
            ledger, self.roster, self.broker, self.metrics, lambda: 0.0,
            lambda run, incarnations: self.lost.append((run, list(incarnations))),
        )  # fmt: skip

    def record(self, *leases: str, now: float = 0.0) -> None:
        """Worker w1 speaks and names the leases that it has."""
        progress = Progress(
            worker="w1", incarnation="b1", at=0.0, leases={lease: [0] * 6 for lease in leases}
        )
        self.roster.record(progress, now, 0.0)


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Nobody lives yet."""
    return World(ledger)


async def test_workers_are_called_back_from_leases_that_nobody_waits_for(world: World, cut: Cut) -> None:
    """Leases of a failed run are called back each time that a worker names them, even if no run is active."""
    lease = cut()
    world.record(lease.id)
    await world.watch.look(0.0)
    assert world.broker.stops == []
    world.record(lease.id)
    world.ledger.runs.change_state("r1", RunState.FAILED, 3.0)
    await world.watch.look(0.0)
    await world.watch.look(0.0)
    assert world.broker.stops == [(None, [lease.id], 0.0)]


async def test_a_lease_that_is_lost_is_taken_back(
    world: World, cut: Cut, caplog: pytest.LogCaptureFixture
) -> None:
    """It happens once, and is logged and counted."""
    lease = cut()
    for now in (0.0, 10.0, 10.1, 11.0):
        world.record(now=now)
        await world.watch.look(now)
        assert (world.ledger.leases.fetch_active("r1") == []) == (now > 10.0)
    assert [record.message for record in caplog.records] == [f"lease {lease.id} is taken back: not_claimed"]
    assert b'oku_leases_expired_total{reason="not_claimed"} 1.0' in world.metrics.expose()


async def test_a_process_that_died_with_a_lease_is_noted(world: World, cut: Cut) -> None:
    """With the run of the lease; here another process of the same worker speaks."""
    lease = cut()
    claim = Claim(lease=lease.id, execution="e1", worker="w1", incarnation="b1", at=0.0)
    world.ledger.leases.apply([claim], 0.0)
    world.record(lease.id)
    world.roster.record(Progress(worker="w1", incarnation="b2", at=1.0, sequence=1), 1.0, 1.0)
    await world.watch.look(1.0)
    assert world.lost == [("r1", ["b1"])]


async def test_time_in_which_nobody_could_be_heard_does_not_count(world: World, cut: Cut) -> None:
    """Every lease has a full new timeout after it."""
    cut()
    await world.watch.look(0.0)
    world.watch.reset_timers(100.0)
    world.record(now=110.0)
    await world.watch.look(110.0)
    assert len(world.ledger.leases.fetch_active("r1")) == 1
    await world.watch.look(110.1)
    assert world.ledger.leases.fetch_active("r1") == []


async def test_the_leases_of_a_thousand_workers_are_taken_back_in_few_transactions(
    world: World, cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each synchronises the disk; others have their turn between them, and the law holds after each."""
    cut(requests=10_000)
    for _ in range(9):
        world.ledger.leases.cut("r1", [lambda _: 1] * 100, 2.0)
    batches: list[int] = []
    turns: list[int] = []
    expire = world.ledger.leases.expire

    def count(leases: Sequence[str], reason: ExpiryReason, now: float) -> list[str]:
        batches.append(len(leases))
        expired = expire(leases, reason, now)
        world.ledger.check("r1")
        return expired

    async def take_turns() -> None:
        while True:
            turns.append(len(batches))
            await asyncio.sleep(0)

    monkeypatch.setattr(world.ledger.leases, "expire", count)
    world.record(now=0.0)
    await world.watch.look(0.0)
    world.record(now=10.1)
    other = asyncio.create_task(take_turns())
    await world.watch.look(10.1)
    other.cancel()
    assert sum(batches) == 901
    assert len(batches) <= 20
    assert max(batches) <= 100
    assert set(range(1, len(batches))) <= set(turns)
    assert world.ledger.leases.fetch_active("r1") == []
    assert world.ledger.check("r1").pending == 10_000
