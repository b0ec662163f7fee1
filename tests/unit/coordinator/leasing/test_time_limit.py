"""Runs that end after a time, dealt out as a coordinator does it."""

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.lease_table import fetch_held, fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.ledger.tables.schedule_table import fetch_periods
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import Progress
from oku_core.spec.parser import Source, parse_spec


class World:
    """A run of ten seconds with one worker."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.roster = Roster(10.0)
        self.active_runs = build_active_runs(ledger, self.broker, self.roster)

    def create(self, **keys: object) -> None:
        """Enter the run."""
        spec = parse_spec(Source(None, {"url": "http://h/", "duration": "10s", **keys}))
        change(self.ledger, create_run, "r1", spec, 0.0)

    async def step(self, now: float) -> RunRecord:
        """The worker speaks, and the run advances."""
        self.roster.record(Progress(worker="w1", incarnation="b1", at=now), now, now)
        self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))
        await self.active_runs.advance(now, now)
        return read(self.ledger, fetch_run, "r1")

    def measure(self, name: str, ended: int, now: float) -> None:
        """A worker speaks, and so many of its requests have ended within a second."""
        incarnation = name.replace("w", "b")
        progress = Progress(worker=name, incarnation=incarnation, at=now)
        self.roster.record(progress, now, now)
        self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))
        [worker] = self.active_runs.shared.assignment.find_takers("r1", [name])
        worker.find_rate("r1").record_interval(ended, 1.0, 10)

    def finish(self, done: int, now: float) -> None:
        """The worker gives back all leases, of which it has done some requests each."""
        for lease in read(self.ledger, fetch_open_leases, "r1"):
            checkpoint = build_checkpoint(lease, min(done, lease.end), end=min(done, lease.end))
            apply_batches(self.ledger, [build_batch(lease, checkpoint)], now)


@pytest.fixture
def world(ledger: Ledger) -> World:
    """The worker has not yet spoken."""
    return World(ledger)


async def test_leases_tell_when_the_time_began(world: World) -> None:
    """So the worker knows when it ends."""
    world.create()
    await world.step(100.0)
    [batch, *_] = world.broker.batches
    assert batch.period == read(world.ledger, fetch_periods, "r1")[0].build_period()
    assert batch.period is not None
    assert batch.period.starts_at == pytest.approx(100.302)
    assert batch.leases[0].wave is None


async def test_when_the_time_is_over_leases_are_called_back_and_the_rest_is_unused(world: World) -> None:
    """Workers hear of it shortly before, and nothing is dealt any more."""
    world.create(concurrency=10)
    await world.step(100.0)
    assert (await world.step(109.7)).state == RunState.RUNNING
    assert world.broker.stops == []
    dealt = len(world.broker.leases)
    for now in (110.0, 110.4, 111.0, 111.2):
        assert (await world.step(now)).state == RunState.RUNNING
    assert [up_to for _, up_to, _ in world.broker.stops] == [dealt, dealt]
    assert world.broker.stop_times == [pytest.approx(110.302)] * 2
    assert len(world.broker.leases) == dealt
    world.finish(7, 111.5)
    run = await world.step(112.0)
    assert (run.state, run.requests, run.accounted) == (RunState.COMPLETED, 7 * dealt, 7 * dealt)


async def test_a_run_of_an_instant_is_dealt_as_well(world: World) -> None:
    """Though its leases are called back at once, its workers know when it ends."""
    world.create(duration="100ms", concurrency=10)
    await world.step(100.0)
    dealt = len(world.broker.leases)
    assert dealt
    for now in (100.1, 100.3, 100.5):
        assert (await world.step(now)).state == RunState.RUNNING
    assert len(world.broker.leases) == dealt
    assert world.broker.stop_times == [pytest.approx(100.402)]
    world.finish(7, 100.6)
    run = await world.step(101.0)
    assert (run.state, run.requests) == (RunState.COMPLETED, 7 * dealt)


async def test_near_its_end_little_more_is_dealt_than_can_be_done(world: World) -> None:
    """As far as the rate of the worker is known; it may become faster, and is not to run dry."""
    world.create(concurrency=10)
    await world.step(100.0)
    for second in (101.0, 102.0, 103.0):
        world.measure("w1", 100, second)
    world.finish(10, 108.0)
    await world.active_runs.advance(108.3, 108.3)
    left_s = 110.302 - 108.3
    untaken = sum(lease.length for lease in read(world.ledger, fetch_open_leases, "r1"))
    assert 100 * (left_s + 1) < untaken <= 100 * (left_s + 2) + 30


async def test_an_idle_worker_gets_work_though_another_has_too_much(world: World) -> None:
    """What one cannot do in the time that is left says nothing of what the other can."""
    world.create(concurrency=10)
    for second in (100.0, 101.0, 102.0, 103.0, 104.0, 105.0):
        for name, count in (("w1", 100), ("w2", 100 if second < 103 else 1)):
            world.measure(name, count, second)
        await world.active_runs.advance(second, second)
    for lease in read(world.ledger, fetch_held, "r1", ["b1"])["b1"]:
        checkpoint = build_checkpoint(lease, 0, end=0)
        apply_batches(world.ledger, [build_batch(lease, checkpoint)], 108.0)
    await world.active_runs.advance(108.3, 108.3)
    held = read(world.ledger, fetch_held, "r1", ["b1", "b2"])
    assert sum(lease.length for lease in held["b2"]) > 5 * 100
    assert 2 * 100 < sum(lease.length for lease in held["b1"]) <= 5 * 100


async def test_a_worker_that_has_run_dry_gets_work_until_the_end(world: World) -> None:
    """A worker that becomes faster in the last half second goes on, after it was told of the end, too."""
    world.create(concurrency=10)
    await world.step(100.0)
    for second in (101.0, 102.0, 103.0):
        world.measure("w1", 100, second)
    await world.active_runs.advance(109.85, 109.85)
    assert world.broker.stop_times == [pytest.approx(110.302)]
    world.finish(0, 109.9)
    world.active_runs.schedule_visit("w1")
    await world.active_runs.advance(109.9, 109.9)
    assert read(world.ledger, fetch_open_leases, "r1")
    world.finish(0, 110.302)
    world.active_runs.schedule_visit("w1")
    await world.active_runs.advance(110.303, 110.303)
    assert not read(world.ledger, fetch_open_leases, "r1")


async def test_a_warm_up_has_a_clock_though_no_time_ends_the_run(ledger: Ledger, world: World) -> None:
    """Its workers must know when the warm-up is over; the run goes on to its last request."""
    spec = parse_spec(Source(None, {"url": "http://h/", "requests": 1000, "warm-up": "2s"}))
    change(ledger, create_run, "r1", spec, 0.0)
    await world.step(100.0)
    assert world.broker.batches[0].period == read(ledger, fetch_periods, "r1")[0].build_period()
    world.finish(5, 900.0)
    run = await world.step(900.0)
    assert (run.state, run.requests) == (RunState.RUNNING, 1000)
    assert read(ledger, fetch_open_leases, "r1")
