import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_delivery
from tests.kit.coordinators.leases import Deal, apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.readiness import build_readiness
from tests.kit.coordinators.transactions import change, check_ledger, read

from oku_coordinator.leasing.expiry import ExpiryRule
from oku_coordinator.leasing.pace import Pace
from oku_coordinator.leasing.reaper import Reaper
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.leasing.void_work import VoidWork
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases import expiring
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables.lease_table import fetch_fleet, fetch_open_leases, fetch_taken_back
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_coordinator.watches.circuit_breaker import CircuitBreaker
from oku_coordinator.workers.liveness import Roster
from oku_coordinator.workers.worker_state import FlightRecords
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.order import Control
from oku_core.messaging.process_ends import FlightRecord
from oku_core.messaging.progress import LeaseProgress, Progress
from oku_core.spec.spec import Spec


class World:
    """A reaper with what it looks at; the worker timeout is 10 s, and Unix time stands at 2 s."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.roster = Roster(10.0)
        self.metrics = Metrics()
        self.pace = Pace()
        readiness = build_readiness(ledger)
        assignment = readiness.assignment
        self.breaker = CircuitBreaker(ledger, self.roster, assignment, readiness, lambda: 2.0)
        delivery = build_delivery(ledger, self.broker, self.roster)
        self.expiry, self.records = ExpiryRule(self.roster), FlightRecords()
        self.void_work = VoidWork(ledger=ledger, roster=self.roster, broker=self.broker, delivery=delivery)
        self.reaper = Reaper(
            ledger=ledger,
            expiry=self.expiry,
            delivery=delivery,
            pace=self.pace,
            metrics=self.metrics,
            clock=lambda: 2.0,
            breaker=self.breaker,
            records=self.records,
            shares=Shares("r1"),
        )

    async def sweep(self, now: float) -> None:
        """Sweep all workers, and the leases of the run that has its turn."""
        run = read(self.ledger, fetch_current_run)
        held = read(self.ledger, fetch_fleet, run.run) if run else {}
        self.void_work.sweep(held)
        suspects = self.roster.mark_suspects(now)
        if run is not None:
            await self.reaper.sweep(run, held, suspects, now)

    def record(
        self,
        *leases: str,
        worker: str = "w1",
        incarnation: str = "",
        now: float = 0.0,
        stopping: bool = False,
    ) -> None:
        """A worker speaks and names the leases that it has."""
        progress = Progress(
            worker=worker, incarnation=incarnation or f"b{worker[1:]}", at=0.0, stopping=stopping,
            leases={lease: LeaseProgress(0, 10, build_no_counts()) for lease in leases},
        )  # fmt: skip
        self.roster.record(progress, now, 0.0)


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Nobody lives yet."""
    return World(ledger)


async def test_workers_are_called_back_from_leases_that_nobody_waits_for(world: World, deal: Deal) -> None:
    """Leases of a failed run are called back each time that a worker names them, even if no run is active."""
    lease = deal()
    world.record(lease.id)
    await world.sweep(0.0)
    assert world.broker.controls == []
    change(world.ledger, change_state, "r1", RunState.FAILED, 3.0)
    await world.sweep(0.0)
    await world.sweep(0.0)
    assert world.broker.ends == [("b1", {lease.id: 0})] * 2


async def test_a_worker_that_leaves_gives_back_what_is_on_its_way_before_it_may(
    world: World, deal: Deal
) -> None:
    """It is asked at once for each lease that it does not name, is sent none again, and then is let go."""
    first, second = deal(), deal()
    world.record(first.id, stopping=True)
    world.record(worker="w2")
    await world.sweep(0.1)
    assert world.broker.controls == [Control(incarnation="b1", ends={second.id: 0})]
    for lease, now in ((second, 0.2), (first, 0.3)):
        await world.sweep(now)
        assert not any(control.may_leave for control in world.broker.controls)
        apply_batches(
            world.ledger, [build_batch(lease, build_checkpoint(lease, done=0, end=0, parts=[]))], now
        )
    world.broker.controls.clear()
    await world.sweep(0.4)
    assert world.broker.controls == [Control(incarnation="b1", may_leave=True)]
    assert read(world.ledger, fetch_run, "r1").resent_at_most == 0
    assert world.broker.leases == []


async def test_a_lease_that_a_living_worker_has_dropped_is_taken_back(
    world: World, deal: Deal, caplog: pytest.LogCaptureFixture
) -> None:
    """It happens once, and is logged and counted; before that the worker is asked for its last word."""
    lease = deal()
    world.record(lease.id)
    for now in (0.0, 4.0, 8.0, 10.1, 11.0):
        if now:
            world.record(now=now)
        await world.sweep(now)
        assert (read(world.ledger, fetch_open_leases, "r1") == []) == (now > 10.0)
    assert world.broker.ends == [("b1", {lease.id: 0})] * 2
    assert [record.message for record in caplog.records] == [f"lease {lease.id} is taken back: dropped"]
    assert b'oku_leases_expired_total{reason="dropped"} 1.0' in world.metrics.expose()[0]


async def test_a_process_that_died_with_a_lease_is_a_loss_of_its_run(
    world: World, deal: Deal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here another process of the same worker speaks. The pace is careful then."""
    lost: list[str] = []
    monkeypatch.setattr(world.breaker, "record_losses", lost.extend)
    lease = deal()
    world.record(lease.id)
    await world.sweep(0.0)
    world.record(incarnation="b9", now=1.0)
    await world.sweep(1.0)
    assert lost == ["b1"]
    world.pace.adjust(1, 1.0)
    assert world.pace.choose_allowance(Spec(), 1, rate_rps=1000.0, taken=10**6) == 1050


async def test_a_record_that_was_found_says_how_far_a_dead_worker_had_gone(world: World, deal: Deal) -> None:
    """Of a lease that it had, and of one that was on its way to it."""
    first, second = deal(20), deal(20)
    world.records.record([FlightRecord(incarnation="b1", reached={first.id: 7})])
    world.record(first.id)
    world.record(incarnation="b1-again", now=1.0)
    await world.sweep(1.0)
    assert read(world.ledger, fetch_run, "r1").resent_at_most == 7
    assert read(world.ledger, fetch_taken_back, "r1") == [(0, 7)]
    assert {lease.id for lease in (first, second)} & {
        lease.id for lease in read(world.ledger, fetch_open_leases, "r1")
    } == set()
    assert check_ledger(world.ledger, "r1").pending == 100


async def test_the_leases_of_many_workers_are_taken_back_some_at_a_time(
    world: World, deal: Deal, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction synchronises the disk; others have their turn between them, and the law holds."""
    deal(1, requests=10_000)
    for number in range(2, 130):
        deal_lease(ledger, "r1", 1, 2.0, worker=f"w{number}")
    batches: list[int] = []
    turns: list[int] = []
    expire = expiring.expire_leases

    def count(transaction: Transaction, leases: Sequence[str], *arguments: Any) -> list[str]:
        batches.append(len(leases))
        return expire(transaction, leases, *arguments)

    async def take_turns() -> None:
        while True:
            turns.append(len(batches))
            await asyncio.sleep(0)

    monkeypatch.setattr(expiring, "expire_leases", count)
    await world.sweep(0.0)
    world.roster.remove_silent(10.1)
    other = asyncio.create_task(take_turns())
    await world.sweep(10.1)
    other.cancel()
    assert sum(batches) == 129
    assert max(batches) <= 50
    assert set(range(1, len(batches))) <= set(turns)
    assert read(ledger, fetch_open_leases, "r1") == []
    assert check_ledger(ledger, "r1").pending == 10_000
