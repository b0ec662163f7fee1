"""Hooks are called by one worker, again only if it is lost, and nothing is dealt before the setup is done."""

from typing import Any

import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_active_runs
from tests.kit.coordinators.leases import apply_batches, build_checkpoint
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.leasing.hook_gate import NOBODY_S
from oku_coordinator.leasing.void_work import VoidWork
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.batches import pause_interrupted
from oku_coordinator.ledger.rules.hooks import MOST_TRIES, give_up_teardown
from oku_coordinator.ledger.rules.leases.expiring import give_up_run
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.ledger.tables.deletion_table import begin_deletion
from oku_coordinator.ledger.tables.hook_table import fetch_setup_data
from oku_coordinator.ledger.tables.lease_table import fetch_fleet
from oku_coordinator.ledger.tables.run_table import fetch_current_run, fetch_run
from oku_coordinator.workers.liveness import Roster
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.messaging.hook import HOOK_LIMIT_S, NO_SETUP, HookAttempt, HookReport
from oku_core.messaging.order import CallHook, DropHooks
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Engine, Hook, Spec
from oku_core.summary.summary import HookState

BOTH = (Hook.SETUP, Hook.TEARDOWN)


class World:
    """A coordinator with a run whose scenario has hooks; the clock moves with `step`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.broker = BrokerTwin()
        self.now = 0.0
        self.start_coordinator()

    def start_coordinator(self) -> None:
        """Forget all that is not in the ledger."""
        self.roster = Roster(10.0)
        self.active_runs = build_active_runs(self.ledger, self.broker, self.roster)
        self.void_work = VoidWork(
            ledger=self.ledger,
            roster=self.roster,
            broker=self.broker,
            delivery=self.active_runs.shared.delivery,
        )

    def create(self, run: str = "r1", hooks: tuple[Hook, ...] = BOTH, **spec: Any) -> None:
        """Enter a run."""
        change(self.ledger, create_run, run, Spec(hooks=hooks, **({"requests": 10} | spec)), self.now)

    def speak(self, worker: str, *hooks: HookAttempt, **changes: Any) -> None:
        """A worker says that it has these attempts in hand."""
        progress = Progress(
            worker=worker, incarnation=f"{worker}-1", at=self.now, hooks=list(hooks), **changes
        )
        self.roster.record(progress, self.now, self.now)

    async def step(self, seconds: float = 1.0) -> None:
        """Time passes, and the coordinator does what there is to do."""
        self.now += seconds
        self.roster.remove_silent(self.now)
        self.active_runs.shared.assignment.settle(read(self.ledger, fetch_current_run))
        self.void_work.sweep({})
        await self.active_runs.advance(self.now, self.now)

    def take_calls(self) -> list[tuple[str, int, str]]:
        """The orders to call a hook since the last call of this: process, number and hook."""
        calls = [order for order in self.broker.hooks if isinstance(order, CallHook)]
        self.broker.hooks.clear()
        return [(call.incarnation, call.attempt.number, str(call.attempt.hook)) for call in calls]

    def report(self, worker: str, hook: Hook, number: int, *, run: str = "r1", **fields: Any) -> None:
        """A worker tells what came of an attempt."""
        report = HookReport(attempt=HookAttempt(run, hook, number), **fields)
        batch = CheckpointBatch(worker=worker, incarnation=f"{worker}-1", checkpoints=[], hooks=[report])
        apply_batches(self.ledger, [batch], now=self.now)

    def finish_lease(self) -> None:
        """What is out is answered."""
        for held in read(self.ledger, fetch_fleet, "r1").values():
            for lease in held:
                batch = CheckpointBatch(
                    worker=lease.worker, incarnation=lease.incarnation, checkpoints=[build_checkpoint(lease)]
                )
                apply_batches(self.ledger, [batch], now=self.now)

    def state(self) -> RunState:
        """That of the run."""
        return read(self.ledger, fetch_run, "r1").state

    def reason(self) -> str:
        """Why the run is in its state."""
        return read(self.ledger, fetch_run, "r1").reason

    async def reach_teardown(self) -> None:
        """Come to where the teardown is called, after a setup that returned 7."""
        self.create()
        self.speak("w1")
        await self.step()
        self.report("w1", Hook.SETUP, 1, value="7")
        await self.step()
        self.finish_lease()
        self.take_calls()


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Nobody lives yet."""
    return World(ledger)


async def test_nothing_is_dealt_before_the_user_code_is_loaded_with_what_the_setup_returned(
    world: World,
) -> None:
    """From the moment on in which it has returned."""
    world.create(engine=Engine.PYTHON)
    world.speak("w1")
    await world.step()
    world.report("w1", Hook.SETUP, 1, value="7")
    world.speak("w1")
    await world.step()
    assert not world.broker.batches
    world.speak("w1", loaded="r1#1")
    await world.step()
    assert len(world.broker.batches) == 1


@pytest.mark.parametrize("how", ["dies", "leaves", "loses its process", "is mute"])
async def test_a_setup_whose_worker_is_lost_goes_to_another_one(world: World, how: str) -> None:
    """The attempt has another number, and a late result of the first one does not count."""
    world.create()
    world.speak("w1")
    world.speak("w2")
    await world.step()
    world.take_calls()
    if how == "leaves":
        world.speak("w1", stopping=True)
    elif how == "loses its process":
        world.report("w1", Hook.SETUP, 1, error="SIGKILL", is_lost=True)
    elif how == "is mute":
        world.now += HOOK_LIMIT_S + 100
        world.speak("w1")
    else:
        world.now += 11.0
    world.speak("w2")
    await world.step()
    world.speak("w2")
    await world.step(2.0)
    assert set(world.take_calls()) == {("w2-1", 2, "setup")}
    world.report("w1", Hook.SETUP, 1, value="1")
    await world.step()
    assert not world.broker.batches
    world.report("w2", Hook.SETUP, 2, value="2")
    assert read(world.ledger, fetch_setup_data, "r1").value == "2"


async def test_a_setup_that_is_lost_again_and_again_fails_the_run(world: World) -> None:
    """Its code may be what kills the processes."""
    world.create()
    for number in range(1, MOST_TRIES + 1):
        world.speak("w1")
        await world.step(2.0)
        world.report("w1", Hook.SETUP, number, error="its process has ended (SIGKILL)", is_lost=True)
    assert world.state() == RunState.FAILED
    assert world.reason() == (
        "setup failed: it was begun 5 times and never ended: its process has ended (SIGKILL)"
    )


async def test_a_run_that_is_over_owes_no_hook(world: World) -> None:
    """A failed run was to call both anew, and was cancelled before it could."""
    world.create()
    world.speak("w1")
    await world.step()
    world.report("w1", Hook.SETUP, 1)
    await world.step()
    change(world.ledger, give_up_run, "r1", RunState.FAILED, world.now, "nobody can go on")
    await world.step()
    world.report("w1", Hook.TEARDOWN, 1)
    change(world.ledger, change_state, "r1", RunState.PENDING, world.now)
    change(world.ledger, change_state, "r1", RunState.CANCELLED, world.now)
    hooks = read(world.ledger, fetch_snapshot, "r1").hooks
    assert [(record.hook, record.state) for record in hooks] == [
        (Hook.SETUP, HookState.GIVEN_UP),
        (Hook.TEARDOWN, HookState.GIVEN_UP),
    ]


@pytest.mark.parametrize("error", ["", "ValueError: no"])
async def test_what_came_of_the_hook_of_a_deleted_run_counts_for_nothing(world: World, error: str) -> None:
    """It was paused in its setup and deleted; its rows go some at a time, and others report meanwhile."""
    world.create()
    world.speak("w1")
    await world.step()
    change(world.ledger, change_state, "r1", RunState.PAUSING, world.now)
    change(world.ledger, begin_deletion, "r1")
    world.report("w1", Hook.SETUP, 1, error=error)
    assert read(world.ledger, fetch_setup_data, "r1") == NO_SETUP


async def test_a_cancelled_run_tears_down_after_the_run_that_has_its_turn(world: World) -> None:
    """One run is served at a time."""
    world.create()
    world.speak("w1")
    await world.step()
    world.report("w1", Hook.SETUP, 1)
    change(world.ledger, change_state, "r1", RunState.PAUSING, world.now)
    world.create("r2", hooks=(), requests=10**6)
    await world.step()
    change(world.ledger, change_state, "r1", RunState.CANCELLED, world.now)
    world.take_calls()
    await world.step()
    current = read(world.ledger, fetch_current_run)
    assert current is not None
    assert (current.run, world.take_calls()) == ("r2", [])
    change(world.ledger, give_up_run, "r2", RunState.FAILED, world.now, "over")
    await world.step()
    assert world.take_calls() == [("w1-1", 1, "teardown")]


async def test_a_run_that_is_being_torn_down_keeps_its_turn(world: World) -> None:
    """An older run that is cancelled meanwhile waits for that, although it was submitted before."""
    world.create("r0")
    world.speak("w1")
    await world.step()
    world.report("w1", Hook.SETUP, 1, run="r0")
    change(world.ledger, change_state, "r0", RunState.PAUSING, world.now)
    await world.reach_teardown()
    await world.step()
    change(world.ledger, change_state, "r0", RunState.CANCELLED, world.now)
    current = read(world.ledger, fetch_current_run)
    assert current is not None
    assert (current.run, read(world.ledger, fetch_run, "r0").state) == ("r1", RunState.TEARING_DOWN)
    world.report("w1", Hook.TEARDOWN, 1)
    world.take_calls()
    await world.step()
    assert world.take_calls() == [("w1-1", 1, "teardown")]


async def test_a_run_that_nobody_can_tear_down_is_over_after_a_while(world: World) -> None:
    """Other runs do not wait for ever."""
    await world.reach_teardown()
    world.now += 20.0
    await world.step()
    await world.step(NOBODY_S - 1)
    assert world.state() == RunState.TEARING_DOWN
    await world.step(2.0)
    assert (world.state(), world.reason()) == (
        RunState.COMPLETED, "teardown was not called: no worker was available within 5 min",
    )  # fmt: skip


async def test_a_teardown_that_is_given_up_is_dropped_by_its_worker(world: World) -> None:
    """The worker is told as long as it names the attempt; and so it is once its result is known."""
    await world.reach_teardown()
    await world.step()
    attempt = HookAttempt("r1", Hook.TEARDOWN, 1)
    world.speak("w1", attempt)
    await world.step()
    assert not [order for order in world.broker.hooks if isinstance(order, DropHooks)]
    change(world.ledger, give_up_teardown, "r1", "was given up", world.now)
    assert (world.state(), world.reason()) == (RunState.COMPLETED, "teardown was given up")
    for _ in range(2):
        await world.step()
    drops = [order for order in world.broker.hooks if isinstance(order, DropHooks)]
    assert drops == [DropHooks(incarnation="w1-1", attempts=[attempt])] * 2


async def test_an_interrupted_teardown_goes_on_when_the_run_is_resumed(world: World) -> None:
    """Its stack was killed: the new one calls it again, and sends nothing more of the run."""
    await world.reach_teardown()
    await world.step()
    pause_interrupted(world.ledger, world.now)
    assert world.state() == RunState.PAUSED
    world.report("w1", Hook.TEARDOWN, 1)
    world.start_coordinator()
    change(world.ledger, change_state, "r1", RunState.PENDING, world.now)
    world.take_calls()
    world.broker.batches.clear()
    world.speak("w2")
    await world.step(2.0)
    await world.step()
    assert world.take_calls() == [("w2-1", 2, "teardown")]
    assert not world.broker.batches
    world.report("w2", Hook.TEARDOWN, 2)
    assert world.state() == RunState.COMPLETED


async def test_workers_that_refuse_the_leases_of_a_run_may_still_tear_it_down(world: World) -> None:
    """The setup has run here, so its code can be loaded."""
    await world.reach_teardown()
    world.roster.record_refusal("w1", "w1-1", ("r1", "no such file"), world.now)
    await world.step()
    assert world.take_calls() == [("w1-1", 1, "teardown")]


async def test_a_worker_that_has_run_user_code_of_another_run_calls_no_hook(world: World) -> None:
    """Not even if there is no other."""
    await world.reach_teardown()
    world.speak("w1", code_run="r0")
    await world.step()
    assert world.take_calls() == []
    world.speak("w2", code_run="r1")
    await world.step()
    assert world.take_calls() == [("w2-1", 1, "teardown")]


async def test_a_run_that_failed_is_torn_down_and_begins_anew_with_both_hooks(world: World) -> None:
    """Its workers get what the new setup returned, though they know the spec with the older one."""
    world.create(requests=10**6)
    world.speak("w1")
    await world.step()
    world.report("w1", Hook.SETUP, 1, value='"old"')
    await world.step()
    change(world.ledger, give_up_run, "r1", RunState.FAILED, world.now, "nobody can go on")
    assert (world.state(), world.reason()) == (RunState.TEARING_DOWN, "nobody can go on")
    await world.step()
    world.report("w1", Hook.TEARDOWN, 1)
    assert (world.state(), world.reason()) == (RunState.FAILED, "nobody can go on")
    change(world.ledger, change_state, "r1", RunState.PENDING, world.now)
    world.broker.batches.clear()
    world.take_calls()
    world.speak("w1", specs=["r1#1"])
    for _ in range(3):
        await world.step()
    assert ("w1-1", 2, "setup") in world.take_calls()
    assert not world.broker.batches
    world.report("w1", Hook.SETUP, 2, value='"new"')
    world.speak("w1", specs=["r1#1"])
    await world.step()
    (batch,) = world.broker.batches
    assert (batch.setup, batch.setup_data, batch.spec is None) == (2, '"new"', False)
    world.speak("w1", specs=["r1#1", "r1#2"])
    await world.step(5.0)
    await world.step()
    assert {(batch.setup_data, batch.spec is None) for batch in world.broker.batches[1:]} <= {("null", True)}
