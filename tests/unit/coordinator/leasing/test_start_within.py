"""How long a run waits for its workers, with everything that has a word in it: queue, clock and dealers."""

from typing import Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.transactions import change

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.progress import Progress
from oku_core.spec.parser import Source, parse_spec

LOADS: dict[str, dict[str, Any]] = {
    "requests": {"requests": 1000},
    "rate": {"rate": "100/s", "duration": "10s"},
    "rate and requests": {"rate": "100/s", "requests": 1000},
    "stages of a rate": {"stages": ["5s:0..100/s", "5s:100/s"]},
    "duration": {"duration": "10s"},
    "stages of concurrency": {"stages": ["5s:10", "5s:20"]},
    "highest rate": {"max-rate": "100/s", "duration": "10s"},
    "warm-up": {"requests": 1000, "warm-up": "2s"},
    "warm-up of a rate": {"rate": "100/s", "duration": "10s", "warm-up": "2s"},
}


class World:
    """A coordinator with a pending run of two workers; a step is made every half second."""

    def __init__(self, ledger: Ledger, **keys: Any) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.roster = Roster(60.0)
        self.active_runs = build_active_runs(ledger, self.broker, self.roster)
        self.now = 0.0
        change(ledger, create_run, "r1", parse_spec(Source("spec", {"workers": 2, **keys})), 0.0)

    def hear(self, *workers: str, knows_clock: bool = True) -> None:
        """Workers speak."""
        bound_s = 0.0 if knows_clock else None
        for worker in workers:
            progress = Progress(worker=worker, incarnation=worker, at=self.now, clock_bound_s=bound_s)
            self.roster.record(progress, self.now, self.now)

    async def deals_until(self, until: float) -> float | None:
        """When the first lease is sent, if it is until then."""
        while self.now <= until:
            await self.active_runs.advance(self.now, self.now)
            if self.broker.leases:
                return self.now
            self.now += 0.5
        return None


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("within_s", [0, 3])
async def test_no_load_waits_longer_than_start_within(ledger: Ledger, load: str, within_s: int) -> None:
    """One worker never comes: its run begins with the other one when its time is over, and not later."""
    world = World(ledger, **LOADS[load], **{"start-within": f"{within_s}s"})
    world.hear("w1")
    assert await world.deals_until(20.0) == within_s


@pytest.mark.parametrize("load", LOADS)
async def test_no_load_waits_for_what_nobody_lacks(ledger: Ledger, load: str) -> None:
    """All workers are there, so a run begins at once."""
    world = World(ledger, **LOADS[load])
    world.hear("w1", "w2")
    assert await world.deals_until(20.0) == 0.0


async def test_a_worker_that_comes_after_its_time_is_not_waited_with(ledger: Ledger) -> None:
    """The run had waited for two all the time when the first one came."""
    world = World(ledger, **LOADS["rate"], **{"start-within": "3s"})
    assert await world.deals_until(10.0) is None
    world.hear("w1")
    assert await world.deals_until(20.0) == world.now == 10.5


@pytest.mark.parametrize(("knows_at", "begins_at"), [(2.0, 2.5), (None, 3.0)])
async def test_a_worker_without_the_clock_is_waited_for_like_one_that_is_missing(
    ledger: Ledger, knows_at: float | None, begins_at: float
) -> None:
    """Nothing can be due to it, so the run begins once it knows the clock, or without it in time."""
    world = World(ledger, **LOADS["rate"], **{"start-within": "3s"})
    world.hear("w1")
    world.hear("w2", knows_clock=False)
    if knows_at is not None:
        assert await world.deals_until(knows_at) is None
        world.hear("w2")
    assert await world.deals_until(20.0) == begins_at


async def test_a_run_without_a_schedule_does_not_wait_for_the_clock(ledger: Ledger) -> None:
    """Its requests are due to nobody."""
    world = World(ledger, **LOADS["duration"])
    world.hear("w1", "w2", knows_clock=False)
    assert await world.deals_until(20.0) == 0.0
