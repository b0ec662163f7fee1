from tests.kit.coordinators.open_world import RUN, OpenWorld
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.schedule_table import fetch_periods
from oku_coordinator.ledger.tables.slice_table import count_pending
from oku_core.accounting.outcome import Outcome, build_outcome_counts
from oku_core.accounting.run_state import RunState


def count(world: OpenWorld) -> dict[str, int]:
    """The outcomes of the run that are not zero."""
    return {name: number for name, number in build_outcome_counts(world.run.outcomes).items() if number}


async def test_the_first_requests_are_dealt_before_they_are_due(ledger: Ledger) -> None:
    """So is everything for the next ten seconds: a coordinator that is away leaves no gap."""
    world = OpenWorld(ledger, rate="50/s", duration="60s")
    world.join("a", "b")
    await world.step()
    assert read(ledger, count_pending, RUN) == 3000 - 500
    assert world.period.starts_at > world.now + 1
    for _ in range(10):
        await world.step()
        assert all(due_at <= sent_at for _, due_at, sent_at in world.sent)
    assert read(ledger, count_pending, RUN) == 3000 - 700
    assert [lease.wave for lease in read(ledger, fetch_open_leases, RUN)][-2:] == [600, 600]


async def test_a_coordinator_that_has_just_started_deals_less_ahead(ledger: Ledger) -> None:
    """It may not have heard of all workers yet; three seconds later it has."""
    world = OpenWorld(ledger, rate="50/s", duration="60s")
    world.join("a", "b")
    await world.step()
    assert read(ledger, count_pending, RUN) == 3000 - 500
    world.restart()
    for _ in range(5):
        await world.step()
        assert read(ledger, count_pending, RUN) == 3000 - 500
    await world.run_for(1.5)
    assert read(ledger, count_pending, RUN) < 3000 - 500


async def test_a_worker_that_joins_gets_its_share_of_the_next_wave(ledger: Ledger) -> None:
    """What is dealt already stays where it is."""
    world = OpenWorld(ledger, rate="60/s", duration="20s")
    world.join("a")
    await world.step()
    world.join("b", "c")
    await world.step()
    assert not world.workers["b"].leases
    await world.step(1.5)
    assert {len(held.dues) for held in world.workers["b"].leases.values()} == {40}
    await world.run_until(RunState.COMPLETED)
    assert count(world) == {Outcome.OK: 1200}


async def test_a_run_whose_stack_was_killed_goes_on_from_its_last_checkpoint(ledger: Ledger) -> None:
    """What may have been sent after it is sent again, at its time."""
    world = OpenWorld(ledger, rate="100/s", duration="20s")
    world.join("a", "b")
    await world.run_for(6.5)
    pause_interrupted(ledger, world.now + 100)
    world.now += 200
    for worker in world.workers.values():
        worker.leases.clear()
    assert world.run.state == RunState.PAUSED
    change(ledger, change_state, RUN, RunState.PENDING, world.now)
    await world.run_until(RunState.COMPLETED)
    assert count(world) == {Outcome.OK: 2000}
    assert all(sent_at - due_at < 0.6 for _, due_at, sent_at in world.sent)


async def test_a_worker_that_does_not_know_the_clock_gets_nothing(ledger: Ledger) -> None:
    """Until it knows when its requests are due; others send everything meanwhile."""
    world = OpenWorld(ledger, rate="60/s", duration="20s")
    world.join("a", "b")
    world.workers["b"].clock_bound_s = None
    await world.run_for(6)
    assert world.workers["a"].leases
    assert not world.workers["b"].leases
    world.workers["b"].clock_bound_s = 0.02
    await world.step(2.5)
    assert world.workers["b"].leases
    await world.run_until(RunState.COMPLETED)
    assert count(world) == {Outcome.OK: 1200}


async def test_who_is_heard_first_again_does_not_get_everything(ledger: Ledger) -> None:
    """After all were silent, the others may come a moment later."""
    world = OpenWorld(ledger, rate="60/s", duration="40s")
    world.join("a")
    await world.run_for(4)
    world.kill("a")
    await world.step(12)
    await world.step()
    world.join("b")
    await world.step()
    world.join("c")
    await world.run_for(4)
    assert world.workers["c"].leases


async def test_a_schedule_does_not_begin_while_the_broker_is_away(ledger: Ledger) -> None:
    """Its first requests would be due before anybody had them."""
    world = OpenWorld(ledger, rate="50/s", duration="10s")
    world.broker.answers = False
    world.join("a", "b")
    await world.run_for(4)
    assert read(ledger, fetch_periods, RUN) == []
    world.broker.answers = True
    await world.run_until(RunState.COMPLETED)
    assert count(world) == {Outcome.OK: 500}
