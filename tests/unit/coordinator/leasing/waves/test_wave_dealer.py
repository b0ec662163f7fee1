from typing import Any

from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.leases.expiring import expire_leases
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.tables.lease_table import fetch_fleet, fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_current_run
from oku_coordinator.ledger.tables.schedule_table import fetch_period
from oku_coordinator.ledger.tables.slice_table import count_pending
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.messaging.progress import Progress
from oku_core.messaging.share import Settled
from oku_core.spec.parser import Source, parse_spec


class World:
    """A run with a rate, which a coordinator deals out every half second; no worker has done anything yet."""

    def __init__(self, ledger: Ledger, **spec: Any) -> None:
        self.ledger = ledger
        self.now = 1000.0
        self.broker = BrokerTwin()
        self.clock_bounds_s: dict[str, float | None] = {}
        """Of the workers that speak."""
        self.start_coordinator()
        change(ledger, create_run, "r1", parse_spec(Source(None, {"url": "http://h/", **spec})), self.now)

    def start_coordinator(self) -> None:
        """Forget all that is not in the ledger."""
        self.roster = Roster(5.0)
        self.active_runs = build_active_runs(self.ledger, self.broker, self.roster, lambda: self.now)

    def join(self, *workers: str) -> None:
        """From now on these workers speak."""
        self.clock_bounds_s |= dict.fromkeys(workers, 0.0)

    async def pass_time(self, seconds: float) -> None:
        """Workers speak, and the coordinator does what there is to do."""
        until = self.now + seconds
        while self.now < until:
            self.now += 0.5
            for worker, bound_s in self.clock_bounds_s.items():
                active = self.active_runs.find("r1")
                share = None if active is None else active.shares.find(worker)
                progress = Progress(
                    worker=worker,
                    incarnation=worker,
                    at=self.now,
                    clock_bound_s=bound_s,
                    settled=[] if share is None else [Settled("r1", share.number)],
                )
                self.roster.record(progress, self.now, self.now)
            self.roster.remove_silent(self.now)
            self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))
            await self.active_runs.advance(self.now, self.now)

    def list_lengths(self, worker: str) -> list[int]:
        """How many requests are in each lease of a worker."""
        return [lease.length for lease in read(self.ledger, fetch_fleet, "r1").get(worker, [])]

    @property
    def pending(self) -> int:
        """How many requests nobody has."""
        return read(self.ledger, count_pending, "r1")


async def test_ten_seconds_are_dealt_before_they_are_due(ledger: Ledger) -> None:
    """A coordinator that is away leaves no gap."""
    world = World(ledger, rate="50/s", duration="60s")
    world.join("a", "b")
    await world.pass_time(0.5)
    assert world.pending == 3000 - 500
    period = read(ledger, fetch_period, "r1")
    assert period is not None
    assert period.starts_at > world.now + 1
    await world.pass_time(5.0)
    assert world.pending == 3000 - 700
    assert [lease.wave for lease in read(ledger, fetch_open_leases, "r1")][-2:] == [600, 600]


async def test_a_coordinator_that_has_just_started_deals_less_ahead(ledger: Ledger) -> None:
    """It may not have heard of all workers yet; three seconds later it has."""
    world = World(ledger, rate="50/s", duration="60s")
    world.join("a", "b")
    await world.pass_time(0.5)
    world.start_coordinator()
    await world.pass_time(2.5)
    assert world.pending == 3000 - 500
    await world.pass_time(1.5)
    assert world.pending < 3000 - 500


async def test_a_worker_that_joins_gets_its_share_of_the_next_wave(ledger: Ledger) -> None:
    """What is dealt already stays where it is."""
    world = World(ledger, rate="60/s", duration="20s")
    world.join("a")
    await world.pass_time(0.5)
    world.join("b", "c")
    await world.pass_time(0.5)
    assert world.list_lengths("b") == []
    await world.pass_time(1.5)
    assert set(world.list_lengths("b")) == {40}


async def test_a_worker_that_does_not_know_the_clock_gets_nothing(ledger: Ledger) -> None:
    """Until it knows when its requests are due."""
    world = World(ledger, rate="60/s", duration="20s")
    world.clock_bounds_s = {"a": 0.0, "b": None}
    await world.pass_time(6.0)
    assert world.list_lengths("a")
    assert world.list_lengths("b") == []
    world.clock_bounds_s["b"] = 0.02
    await world.pass_time(2.5)
    assert world.list_lengths("b")


async def test_who_is_heard_first_again_does_not_get_everything(ledger: Ledger) -> None:
    """After all were silent, the others may come a moment later."""
    world = World(ledger, rate="60/s", duration="40s")
    world.join("a")
    await world.pass_time(4.0)
    world.clock_bounds_s.clear()
    await world.pass_time(12.0)
    held = [lease.id for lease in read(ledger, fetch_open_leases, "r1")]
    change(ledger, expire_leases, held, ExpiryReason.WORKER_LOST, world.now)
    world.join("b")
    await world.pass_time(0.5)
    assert sum(world.list_lengths("b")) < 10 * 60
    world.join("c")
    await world.pass_time(4.0)
    assert world.list_lengths("c")


async def test_a_schedule_does_not_begin_while_the_broker_is_away(ledger: Ledger) -> None:
    """Its first requests would be due before anybody had them."""
    world = World(ledger, rate="50/s", duration="10s")
    world.broker.answers = False
    world.join("a", "b")
    await world.pass_time(4.0)
    assert read(ledger, fetch_period, "r1") is None
    world.broker.answers = True
    await world.pass_time(0.5)
    assert read(ledger, fetch_period, "r1") is not None
