import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.leases import apply_batches, build_batch, build_checkpoint, deal_lease
from tests.kit.coordinators.transactions import change, read
from tests.kit.outcomes import make_counts

from oku_coordinator.leasing.ranges.sizing import build_backlog
from oku_coordinator.ledger import Ledger, batches
from oku_coordinator.ledger.rules.leases.expiring import give_up_run, pause_interrupted_run
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.tables.accounts.account_table import is_in_memory
from oku_coordinator.ledger.tables.lease_table import fetch_fleet, fetch_open_leases
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.outcome import build_no_counts
from oku_core.accounting.run_state import RunState
from oku_core.messaging.progress import LeaseProgress, Progress, RunProgress
from oku_core.messaging.share import Settled
from oku_core.spec.spec import Spec
from oku_core.spec.values.quantity import Rate


class World:
    """The runs that have their turn; a run begins as soon as a worker is there."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.roster = Roster(10.0)
        self.active_runs = build_active_runs(ledger, self.broker, self.roster)

    def create(self, run: str = "r1", requests: int = 10**9, **spec: Any) -> None:
        """Enter a run."""
        change(self.ledger, create_run, run, Spec(requests=requests, **spec), 0.0)

    def record(self, *workers: str, now: float = 0.0, ended: int = 0, **taken: int) -> None:
        """Workers speak; a lease is named by what was taken of it."""
        active = self.active_runs.find("r1")
        for worker in workers:
            share = None if active is None else active.shares.find(f"b{worker[1:]}")
            progress = Progress(
                worker=worker, incarnation=f"b{worker[1:]}", at=now,
                settled=[] if share is None else [Settled("r1", share.number)],
                runs={"r1": RunProgress(in_flight=100, outcomes=make_counts(ended))},
                leases={
                    lease.id: LeaseProgress(taken.get(f"taken_{number}", 0), lease.end, build_no_counts())
                    for number, lease in enumerate(self.held(worker))
                },
            )  # fmt: skip
            self.roster.record(progress, now, now)
        self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))

    def held(self, worker: str) -> list[Any]:
        """The open leases of a worker."""
        return read(self.ledger, fetch_fleet, "r1").get(f"b{worker[1:]}", [])

    def find_sizes(self, worker: str) -> list[int]:
        """The sizes of the leases of a worker."""
        return [lease.length for lease in self.held(worker)]


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Nobody lives yet."""
    return World(ledger)


async def test_a_worker_of_which_nothing_is_known_gets_ten_windows(world: World) -> None:
    """It may take all of them before it must have reported: that is the smallest allowance."""
    world.create(concurrency=10)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    assert world.find_sizes("w1") == [25] * 4
    assert [lease.limit for lease in world.broker.leases] == [25] * 4
    assert len(world.broker.batches) == 1


async def test_a_first_limit_is_no_more_than_may_be_lost(world: World) -> None:
    """Leases of a fixed size may be larger than the allowance, or many together."""
    world.create(concurrency=10, range_size=15)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    assert [(lease.length, lease.limit) for lease in world.held("w1")] == [(15, 15)] * 6 + [(15, 10)]


async def test_the_allowance_is_charged_for_what_leases_have(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where single indices are left, a lease is smaller than its order: the next one may be taken, too."""
    monkeypatch.setattr("oku_coordinator.ledger.tables.lease_table.MOST_RANGES", 5)
    world.create(requests=200, concurrency=10, range_size=39)
    change(world.ledger, change_state, "r1", RunState.RUNNING, 0.0)
    lease = deal_lease(world.ledger, "r1", 200, 0.0)
    checkpoint = build_checkpoint(lease, in_flight=range(0, 200, 2))
    apply_batches(world.ledger, [build_batch(lease, checkpoint)], 0.0)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    assert [(lease.length, lease.limit) for lease in world.held("w1")] == [(5, 5)] * 3


async def test_a_full_backlog_gets_nothing_more(world: World) -> None:
    """What matters is what is untaken: a lease that only waits for its last answers fills no backlog."""
    world.create(concurrency=10)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    world.record("w1", now=1.0)
    await world.active_runs.advance(1.0, 1.0)
    assert world.find_sizes("w1") == [25] * 4
    world.record("w1", now=2.0, taken_0=25, taken_1=25)
    await world.active_runs.advance(2.0, 2.0)
    assert world.find_sizes("w1") == [25] * 6


async def test_the_first_rate_is_not_weighed_against_guesses(world: World) -> None:
    """The one worker that has a rate would get all that is left as one lease."""
    world.create(requests=1000, concurrency=20)
    world.record("w1", "w2")
    await world.active_runs.advance(0.0, 0.0)
    world.record("w1", "w2", now=1.0, ended=100)
    await world.active_runs.advance(1.9, 1.9)
    world.record("w1", now=2.0, ended=100, taken_0=25, taken_1=25, taken_2=25, taken_3=25)
    world.active_runs.schedule_visit("w1")
    await world.active_runs.advance(2.1, 2.1)
    sizes = world.find_sizes("w1")[4:]
    assert sizes[0] == 800 // 4
    assert sum(sizes) == 800


async def test_a_run_that_stops_in_the_middle_leaves_nothing_to_deal(world: World) -> None:
    """The main loop would go round without a pause."""
    world.create(concurrency=30, range_size=1)
    world.record("w1", "w2", "w3")
    await world.active_runs.advance(0.0, 0.0)
    assert world.active_runs.has_more
    change(world.ledger, change_state, "r1", RunState.PAUSING, 1.0)
    await world.active_runs.advance(1.0, 1.0)
    assert not world.active_runs.has_more


async def test_a_worker_whose_checkpoints_have_come_is_visited_at_once(world: World) -> None:
    """All others are visited once a second."""
    world.create(concurrency=20)
    world.record("w1", "w2")
    await world.active_runs.advance(0.0, 0.0)
    for worker in ("w1", "w2"):
        leases = world.held(worker)
        batch = build_batch(leases[0], *(build_checkpoint(lease) for lease in leases), run="r1", taken=200)
        apply_batches(world.ledger, [batch], 0.1)
        world.roster.record_taken(batch)
    world.active_runs.schedule_visit("w2")
    await world.active_runs.advance(0.2, 0.2)
    assert (world.find_sizes("w1"), world.find_sizes("w2")) == ([], [100, 100])
    await world.active_runs.advance(1.0, 1.0)
    assert world.find_sizes("w1") == [100, 100]


async def test_the_last_leases_of_a_fixed_size_are_for_those_who_are_done_soonest(world: World) -> None:
    """A slow worker that has just spoken would get all that is left, and be asked for it a second later."""
    world.create(requests=30, concurrency=5, range_size=20)
    world.record("w1", "w2")
    await world.active_runs.advance(0.0, 0.0)
    [slow], [fast] = world.held("w1"), world.held("w2")
    assert (slow.length, fast.length) == (20, 10)
    done = build_batch(fast, build_checkpoint(fast), run="r1", taken=10, worker="w2", incarnation="b2")
    cut = build_batch(
        slow, build_checkpoint(slow, 1, end=2, is_final=False, in_flight=[0]), run="r1", taken=1
    )
    apply_batches(world.ledger, [done, cut], 0.5)
    world.active_runs.schedule_visit("w1")
    await world.active_runs.advance(0.6, 0.6)
    assert (world.find_sizes("w1"), world.find_sizes("w2")) == ([20], [18])


async def test_what_a_slow_worker_gives_up_is_for_the_others(world: World) -> None:
    """Its checkpoint is the news that makes it visit workers, but then it visits all of them."""
    world.create(requests=200, concurrency=10)
    world.record("w1", "w2")
    await world.active_runs.advance(0.0, 0.0)
    for second in (1.0, 2.0):
        world.record("w1", now=second, ended=1)
        world.record("w2", now=second, ended=30)
    slow, fast = world.held("w1"), world.held("w2")
    done = build_batch(fast[0], *(build_checkpoint(lease) for lease in fast), run="r1", taken=100)
    given_up = [build_checkpoint(lease, 0) for lease in slow[1:]]
    apply_batches(world.ledger, [done, build_batch(slow[0], *given_up, run="r1", taken=1)], 2.0)
    world.record("w1", "w2", now=2.0)
    world.active_runs.schedule_visit("w1")
    await world.active_runs.advance(0.9, 2.1)
    kept, moved = sum(world.find_sizes("w1")[1:]), sum(world.find_sizes("w2"))
    assert kept < 5
    assert moved > 20


async def test_a_suspect_gets_nothing(world: World) -> None:
    """It may be dead."""
    world.create(concurrency=20)
    world.record("w1")
    world.record("w2", now=2.1)
    world.roster.mark_suspects(2.1)
    await world.active_runs.advance(2.1, 2.1)
    assert (world.find_sizes("w1"), world.find_sizes("w2")) == ([], [25] * 4)


async def test_nothing_is_dealt_while_the_broker_is_away(world: World) -> None:
    """Nobody would hear of it in time."""
    world.create()
    world.record("w1")
    world.broker.answers = False
    await world.active_runs.advance(0.0, 1.0)
    assert read(world.ledger, fetch_open_leases, "r1") == []
    assert not world.active_runs.has_more
    world.broker.answers = True
    await world.active_runs.advance(0.5, 1.5)
    assert len(world.broker.leases) == len(read(world.ledger, fetch_open_leases, "r1")) > 0


async def test_untaken_work_is_asked_back_for_workers_that_have_none(world: World) -> None:
    """Nothing is pending, and a second worker has come; once the first has answered, that gets its part."""
    world.create(requests=4000, concurrency=1000)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    assert sum(world.find_sizes("w1")) == 4000
    for now in (1.0, 1.1):  # the second time they confirm their shares
        world.record("w1", "w2", now=now)
        await world.active_runs.advance(now, now)
    [(incarnation, ends)] = world.broker.ends
    assert incarnation == "b1"
    assert sum(lease.end - ends.get(lease.id, lease.end) for lease in world.held("w1")) == 2000
    last = world.held("w1")[-1]
    shortened = build_checkpoint(last, 0, end=ends[last.id], is_final=True, parts=[])
    apply_batches(world.ledger, [build_batch(last, shortened)], 1.1)
    await world.active_runs.advance(1.2, 1.2)
    await world.active_runs.advance(2.0, 2.0)
    assert sum(world.find_sizes("w2")) > 0


async def test_work_that_was_given_on_a_wrong_guess_is_asked_back(world: World) -> None:
    """Ten windows of 1,000 are more than 30 s of a worker that does 10 a second: two windows stay."""
    world.create(concurrency=1000)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    for second in (1.0, 2.0):
        world.record("w1", now=second, ended=10)
    await world.active_runs.advance(2.0, 2.0)
    first, *others = world.held("w1")
    assert world.broker.ends == [("b1", {first.id: 2000} | {lease.id: 0 for lease in others})]


async def test_leases_whose_size_the_spec_fixes_are_no_wrong_guess(world: World) -> None:
    """Whoever asks for leases of 5,000 gets them."""
    world.create(concurrency=10, range_size=5000)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    for second in (1.0, 2.0):
        world.record("w1", now=second, ended=10)
    await world.active_runs.advance(2.0, 2.0)
    assert world.broker.ends == []


async def test_hundreds_of_workers_are_not_all_looked_at_for_each_hundred_leases(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first visit each step looks at as many as it has leases for, and all get theirs."""
    looked: list[int] = []

    def count(*arguments: Any) -> Any:
        looked[-1] += 1
        return build_backlog(*arguments)

    monkeypatch.setattr("oku_coordinator.leasing.ranges.range_dealer.build_backlog", count)
    world.create(concurrency=5000)
    world.record(*(f"w{number}" for number in range(500)))
    while not looked or world.active_runs.has_more:
        looked.append(0)
        await world.active_runs.advance(0.0, 0.0)
    assert looked[0] == 500
    assert max(looked[1:]) <= 200
    assert sum(looked) <= 500 + 2 * 2000
    assert {len(leases) for leases in read(world.ledger, fetch_fleet, "r1").values()} == {4}
    assert len(world.broker.leases) == 2000


async def test_a_run_knows_no_shares_of_the_run_before(world: World) -> None:
    """Its workers would hear of them with each answer to a checkpoint."""
    world.create(max_rate=Rate("5/s"))
    world.create("r2")
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    active = world.active_runs.find("r1")
    assert active is not None
    share = active.shares.find("b1")
    assert share is not None
    assert (share.run, share.rank, share.of, share.is_alone) == ("r1", 0, 1, True)
    change(world.ledger, give_up_run, "r1", RunState.FAILED, 1.0, "it must not go on")
    await world.active_runs.advance(1.0, 1.0)
    active = world.active_runs.find("r2")
    assert active is not None
    share = active.shares.find("b1")
    assert share is not None
    assert share.run == "r2"


async def resume(world: World, path: Path, statement: str) -> None:
    """Resume a run that has sent some requests; then another process writes, so nothing stays in memory."""
    world.create("r1", 100, range_size=10)
    world.record("w1")
    await world.active_runs.advance(0.0, 0.0)
    lease = world.held("w1")[0]
    apply_batches(world.ledger, [build_batch(lease, build_checkpoint(lease))], 1.0)
    change(world.ledger, pause_interrupted_run, "r1", 2.0, goes_on=False)
    world.active_runs.close_others()
    change(world.ledger, change_state, "r1", RunState.PENDING, 3.0)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(statement)


async def test_a_resumed_run_begins_once_its_account_is_in_memory(world: World, path: Path) -> None:
    """A round that began before the run got its turn leaves that to the next one."""
    await resume(world, path, "UPDATE runs SET reason = 'none'")
    for state, is_loaded in ((RunState.PENDING, False), (RunState.RUNNING, True)):
        waiting = await world.active_runs.advance(4.0, 4.0)
        assert waiting is not None
        assert (waiting.state, read(world.ledger, is_in_memory, "r1")) == (state, is_loaded)
        await world.active_runs.load()


async def test_an_account_that_is_broken_is_read_once_in_a_turn(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its run waits for workers; the run fails when it begins."""
    await resume(world, path, "UPDATE accounts SET times = x'90'")
    loads: list[str] = []
    load = batches.preload_account

    def load_account(ledger: Ledger, run: str) -> None:
        loads.append(run)
        load(ledger, run)

    monkeypatch.setattr(batches, "preload_account", load_account)
    for _ in range(3):
        await world.active_runs.load()
    assert loads == ["r1"]
    with pytest.raises(BreachError):
        await world.active_runs.advance(4.0, 4.0)
    assert read(world.ledger, fetch_run, "r1").state == RunState.FAILED
