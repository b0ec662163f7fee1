import asyncio

import pytest
from tests.kit.coordinators.counting_signals import CountingSignals
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.accounts.work_table import fetch_servers
from oku_coordinator.servers.served_count import NamedServers, ServedCounter, ServerCount
from oku_coordinator.servers.server_watch import LONGEST_GAP_S, UNSEEN, ServerWatch
from oku_core.accounting.run_state import RunState
from oku_core.process.supervision import Supervisor
from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url


class Servers(ServedCounter):
    """Delay servers in memory; None says that one does not answer."""

    def __init__(self, ledger: Ledger, *, is_fixed: bool = False) -> None:
        super().__init__(NamedServers(["http://127.0.0.1:1" if is_fixed else "http://servers:1"]), ledger)
        self.stores: list[str] | None = ["a", "b"]
        self.kept = True
        self.forgotten = 0
        self.asked = 0

    async def announce(self, run: str) -> list[ServerCount] | None:
        """Their answers."""
        assert run == "r1"
        self.asked += 1
        if self.stores is None:
            return None
        return [
            ServerCount(served=0, store=store, kept=self.kept, forgotten=self.forgotten)
            for store in self.stores
        ]


class World:
    """A watch at a time that is set by hand."""

    def __init__(self, ledger: Ledger, *, is_fixed: bool = False) -> None:
        self.ledger = ledger
        self.now = 1000.0
        self.servers = Servers(ledger, is_fixed=is_fixed)
        self.signals = CountingSignals()
        self.watch = self.build_watch()

    def build_watch(self) -> ServerWatch:
        """A watch as a coordinator has it that has just started."""
        return ServerWatch(self.servers, self.ledger, self.signals, lambda: self.now)

    @property
    def seen(self) -> set[str]:
        """What the ledger knows."""
        return set(read(self.ledger, fetch_servers, "r1"))


@pytest.fixture
def world(ledger: Ledger) -> World:
    """Two servers behind a name."""
    return World(ledger)


def submit(ledger: Ledger, **spec: str) -> RunRecord:
    """A run against the delay servers that waits for its turn."""
    return change(ledger, create_run, "r1", Spec(requests=10, **spec), 0.0)  # type: ignore[arg-type]


async def begin(world: World) -> RunRecord:
    """A run that was looked at and has begun."""
    run = submit(world.ledger)
    world.watch.may_start(run)
    await world.watch.check()
    return change(world.ledger, change_state, "r1", RunState.RUNNING, world.now)


async def test_a_run_begins_when_its_servers_were_looked_at(world: World) -> None:
    """No run begins before, so that no server is lost unseen; the coordinator is woken then."""
    run = submit(world.ledger)
    await world.watch.check()
    assert world.servers.asked == 0
    assert not world.watch.may_start(run)
    await world.watch.check()
    assert world.watch.may_start(run)
    assert (world.seen, world.signals.wakes) == ({"a", "b"}, 1)


def test_a_run_with_a_target_of_its_own_needs_no_look(world: World) -> None:
    """It has no servers."""
    run = change(world.ledger, create_run, "r1", Spec(requests=10, urls=(Url("http://h/"),)), 0.0)
    assert world.watch.may_start(run)


async def test_servers_that_do_not_answer_at_the_beginning_leave_their_count_unknown(world: World) -> None:
    """The run begins all the same: what comes of its requests is an account, too."""
    run = submit(world.ledger)
    world.servers.stores = None
    for _ in range(3):
        assert not world.watch.may_start(run)
        await world.watch.check()
    assert world.watch.may_start(run)
    assert world.seen == {UNSEEN}


async def test_servers_are_asked_again_before_their_count_is_given_up(world: World) -> None:
    """One that was about to leave did not answer any more."""
    run = submit(world.ledger)
    world.servers.stores = None
    for _ in range(2):
        assert not world.watch.may_start(run)
        await world.watch.check()
    world.servers.stores = ["a"]
    assert not world.watch.may_start(run)
    await world.watch.check()
    assert world.watch.may_start(run)
    assert world.seen == {"a"}


async def test_servers_that_come_during_a_run_are_seen(world: World) -> None:
    """An autoscaler adds some, and takes them away again."""
    await begin(world)
    world.servers.stores = ["a", "b", "c"]
    world.now += 5
    await world.watch.check()
    world.servers.stores = ["a", "b"]
    world.now += 5
    await world.watch.check()
    assert world.seen == {"a", "b", "c"}


async def test_a_short_time_without_answers_is_not_a_loss(world: World) -> None:
    """Nobody comes and goes in it unseen."""
    await begin(world)
    world.servers.stores = None
    world.now += LONGEST_GAP_S
    await world.watch.check()
    assert world.seen == {"a", "b"}


async def test_after_too_long_without_a_look_the_count_is_unknown(world: World) -> None:
    """A server may have come and gone; nothing makes that good, so nobody is asked any more."""
    await begin(world)
    world.now += LONGEST_GAP_S + 1
    await world.watch.check()
    assert UNSEEN in world.seen
    asked = world.servers.asked
    await world.watch.check()
    assert world.servers.asked == asked


async def test_a_coordinator_that_was_away_for_too_long_knows_that_before_it_takes_reports(
    world: World,
) -> None:
    """The first report may end the run."""
    await begin(world)
    world.now += LONGEST_GAP_S + 1
    watch = world.build_watch()
    watch.start(Supervisor())
    assert UNSEEN in world.seen
    await watch.end()


async def test_a_coordinator_that_comes_back_soon_goes_on(world: World) -> None:
    """What was seen is in the ledger."""
    await begin(world)
    world.now += LONGEST_GAP_S
    world.servers.stores = ["a", "b", "c"]
    watch = world.build_watch()
    watch.start(Supervisor())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await watch.end()
    assert world.seen == {"a", "b", "c"}


async def test_fixed_servers_are_looked_at_once(ledger: Ledger) -> None:
    """Whoever takes the place of one is noticed by the one that is missing."""
    world = World(ledger, is_fixed=True)
    await begin(world)
    world.now += 1000
    await world.watch.check()
    await world.build_watch().check()
    assert (world.seen, world.servers.asked) == ({"a", "b"}, 1)


async def test_a_run_that_is_resumed_is_looked_at_again(world: World) -> None:
    """Its servers may be others by now, and those of before are missing then."""
    await begin(world)
    change(world.ledger, change_state, "r1", RunState.PAUSING, world.now)
    world.now += 10_000
    await world.watch.check()
    run = change(world.ledger, change_state, "r1", RunState.PENDING, world.now)
    assert not world.watch.may_start(run)
    world.servers.stores = ["c"]
    await world.watch.check()
    assert world.watch.may_start(run)
    assert world.seen == {"a", "b", "c"}


async def test_the_task_looks_as_soon_as_a_run_asks(world: World) -> None:
    """It does not wait for the next round."""
    run = submit(world.ledger)
    world.watch.start(Supervisor())
    await asyncio.sleep(0)
    assert not world.watch.may_start(run)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.watch.may_start(run)
    await world.watch.end()


async def test_a_server_that_cannot_keep_the_count_makes_it_unknown(world: World) -> None:
    """Names that others make up could take its place."""
    world.servers.kept = False
    await begin(world)
    assert UNSEEN in world.seen


async def test_a_server_that_comes_late_and_has_forgotten_names_makes_the_count_unknown(
    world: World,
) -> None:
    """The run may have been among them; what one forgot that was there from the beginning was not the run."""
    await begin(world)
    world.servers.forgotten = 7
    await world.watch.check()
    assert world.seen == {"a", "b"}
    world.servers.stores = ["a", "b", "c"]
    await world.watch.check()
    assert world.seen == {"a", "b", "c", UNSEEN}
