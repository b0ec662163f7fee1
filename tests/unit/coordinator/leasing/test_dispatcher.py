import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_coordinator.broker.sender import Broker
from oku_coordinator.leasing.dispatcher import Dispatcher, build_sent_spec, find_free_slots
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.runs.queue_watch import QueueWatch
from oku_coordinator.runs.readiness import Readiness
from oku_coordinator.workers.liveness import Roster, WorkerState
from oku_core.accounting.run_state import RunState
from oku_core.messaging.celery_app import build_app
from oku_core.messaging.lease import Lease, Report
from oku_core.messaging.progress import Progress
from oku_core.spec.spec import Spec
from oku_core.spec.values.header import Header
from oku_core.spec.values.url import Url

MakeReport = Callable[..., Report]


class BrokerTwin(Broker):
    """A broker in memory that remembers what was sent; `on_send` may say that it did not take a lease."""

    def __init__(self) -> None:
        self.answers = True
        super().__init__(build_app("memory://", MESSAGE_KEY), lambda: self.answers)
        self.leases: list[Lease] = []
        self.stops: list[tuple[str | None, int, float]] = []
        self.on_send: Callable[[Lease], bool] = lambda _: True

    def send_leases(self, leases: Sequence[Lease]) -> int:
        """Take leases, until told otherwise."""
        for sent, lease in enumerate(leases):
            if not self.on_send(lease):
                return sent
            self.leases.append(lease)
        return len(leases)

    def send_stop(self, *, run: str | None, up_to: int = 0, leases: Sequence[str], grace_s: float) -> None:
        """Take an order to stop."""
        assert not leases
        self.stops.append((run, up_to, grace_s))


@pytest.fixture
def broker() -> BrokerTwin:
    """An empty broker."""
    return BrokerTwin()


@pytest.fixture
def roster() -> Roster:
    """Nobody lives yet."""
    return Roster(10.0)


@pytest.fixture
def dispatcher(ledger: Ledger, roster: Roster, broker: BrokerTwin) -> Dispatcher:
    """A dispatcher for two delay servers."""
    queue_watch = QueueWatch(ledger, Readiness(ledger, roster), 60.0, time.time)
    servers = ["http://127.0.0.1:1", "http://127.0.0.1:2/"]
    return Dispatcher(ledger, roster, broker, servers, queue_watch.begin)


def record(roster: Roster, *workers: str, ended: int = 0, ahead_s: float = 0.0) -> None:
    """Workers speak."""
    for worker in workers:
        progress = Progress(worker=worker, incarnation=worker, at=ahead_s, outcomes=[ended, 0, 0, 0, 0, 0])
        roster.record(progress, 0.0, 0.0)


@pytest.mark.parametrize(
    ("workers", "holders", "free"),
    [
        ([], [], []),
        (["w1"], [], ["w1", "w1"]),
        (["w1"], ["w1"], ["w1"]),
        (["w1"], ["w1", "w1"], []),
        (["w1"], ["w1", "w1", "w1"], []),
        (["w1", "w2"], [], ["w1", "w2", "w1", "w2"]),
        (["w1", "w2"], ["w1"], ["w2", "w1", "w2"]),
        (["w1", "w2"], ["w1", "w1"], ["w2", "w2"]),
        (["w1", "w2"], ["gone", "gone"], ["w1", "w2", "w1", "w2"]),
        (["w1", "w2"], [None], ["w2", "w1", "w2"]),
        (["w1", "w2"], ["w1", None], ["w1", "w2"]),
        (["w1", "w2"], [None, None, None, None], []),
        (["w1"], [None, None, None], []),
    ],
)
def test_each_free_hand_takes_a_lease_the_emptiest_first(
    workers: list[str], holders: list[str | None], free: list[str]
) -> None:
    """A worker has two slots; a lease that nobody has claimed yet fills one of the emptiest worker."""
    states = [WorkerState(name, name, 0.0) for name in workers]
    assert [worker.name for worker in find_free_slots(states, Counter(holders))] == free


def test_own_servers_are_asked_by_address_and_told_the_run(begin_run: Callable[..., RunRecord]) -> None:
    """Request i goes to `/i` of the servers in turn; the rest of the spec is as it was."""
    run = begin_run("r1", headers=(Header("A: b"),), concurrency=7)
    spec = build_sent_spec(run, ["http://s1:1", "http://s2:2/"])
    assert spec.urls == ("http://s1:1/{i}", "http://s2:2/{i}")
    assert spec.headers == ("A: b", "Oku-Run: r1")
    assert (spec.requests, spec.concurrency) == (100, 7)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, []),
        ({"delay": "0..3s", "seed": 7}, ["Oku-Delay: 0..3s", "Oku-Seed: 7"]),
        ({"delay": "0s"}, ["Oku-Delay: 0s"]),
        ({"seed": 0}, ["Oku-Seed: 0"]),
    ],
)
def test_own_servers_are_told_the_delay_and_the_seed_that_a_run_asks_for(
    begin_run: Callable[..., RunRecord], asked: dict[str, Any], said: list[str]
) -> None:
    """A run that asks for none has what the servers were started with."""
    run = begin_run("r1", **asked)
    assert build_sent_spec(run, ["http://s1:1"]).headers == ("Oku-Run: r1", *said)


def test_a_target_of_others_is_told_nothing(begin_run: Callable[..., RunRecord]) -> None:
    """Its spec is sent as it was written."""
    run = begin_run("r1", urls=(Url("http://example.org/{i}"),), delay="1s", seed=1)
    assert build_sent_spec(run, ["http://s1:1"]) == run.spec


async def test_without_a_run_there_is_nothing_to_do(dispatcher: Dispatcher, roster: Roster) -> None:
    """The number of workers makes no difference."""
    record(roster, "w1")
    assert await dispatcher.step(0.0, 0.0) is None


async def test_a_run_waits_for_a_worker(dispatcher: Dispatcher, ledger: Ledger, roster: Roster) -> None:
    """It is pending until one lives that can take leases."""
    ledger.runs.create("r1", Spec(requests=100), 0.0)
    waiting = await dispatcher.step(0.0, 0.0)
    assert waiting is not None
    assert waiting.state == ledger.runs.fetch("r1").state == RunState.PENDING
    record(roster, "w1")
    begun = await dispatcher.step(0.5, 0.5)
    assert begun is not None
    assert begun.state == ledger.runs.fetch("r1").state == RunState.RUNNING


async def test_every_free_slot_gets_a_lease(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin
) -> None:
    """Each lease is sent once, with its range, its spec and the time after which it is stale."""
    ledger.runs.create("r1", Spec(requests=10_000, range_size=1000), 0.0)
    record(roster, "w1", "w2", ahead_s=20.0)
    await dispatcher.step(0.0, 100.0)
    await dispatcher.step(0.5, 100.5)
    active = ledger.leases.fetch_active("r1")
    assert [(lease.id, lease.run, lease.start, lease.stop) for lease in broker.leases] == [
        (lease.id, "r1", lease.start, lease.stop) for lease in active
    ]
    assert [(lease.start, lease.stop) for lease in broker.leases] == [
        (0, 1000),
        (1000, 2000),
        (2000, 3000),
        (3000, 4000),
    ]
    assert {lease.start_by for lease in broker.leases} == {100.0 + 60.0 + 20.0}
    assert broker.leases[0].spec == build_sent_spec(
        ledger.runs.fetch("r1"), ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    )


async def test_a_lease_is_cut_to_the_rate_of_its_worker(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin
) -> None:
    """One whose rate is unknown is taken for an average one."""
    ledger.runs.create("r1", Spec(requests=10**9), 0.0)
    record(roster, "w1", ended=100)
    record(roster, "w2", ended=300)
    record(roster, "w3")
    await dispatcher.step(0.0, 0.0)
    sizes = [lease.stop - lease.start for lease in broker.leases]
    assert sizes == [1000, 3000, 2000, 1000, 3000, 2000]


async def test_all_is_dealt_out_when_there_is_less_than_slots(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin, make_report: MakeReport
) -> None:
    """After that there is nothing to do until the reports are in."""
    ledger.runs.create("r1", Spec(requests=60, range_size=50), 0.0)
    record(roster, "w1", "w2")
    await dispatcher.step(0.0, 0.0)
    assert [(lease.start, lease.stop) for lease in broker.leases] == [(0, 50), (50, 60)]
    ledger.leases.apply([make_report(lease) for lease in ledger.leases.fetch_active("r1")], 5.0)
    assert await dispatcher.step(5.0, 5.0) is None
    assert len(broker.leases) == 2


async def test_a_lease_that_the_broker_does_not_take_is_taken_back(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin
) -> None:
    """Nothing was sent; the next round tries again, with a new lease of the same range."""
    ledger.runs.create("r1", Spec(requests=100, range_size=10), 0.0)
    record(roster, "w1")
    tried: list[Lease] = []

    def refuse(lease: Lease) -> bool:
        tried.append(lease)
        return False

    broker.on_send = refuse
    await dispatcher.step(0.0, 0.0)
    assert len(tried) == 1
    assert ledger.check("r1").pending == 100
    assert ledger.runs.fetch("r1").resent_at_most == 0
    broker.on_send = lambda _: True
    await dispatcher.step(0.5, 0.5)
    assert broker.leases[0].start == tried[0].start == 0
    assert broker.leases[0].id != tried[0].id


async def test_nothing_is_dealt_while_the_broker_is_away(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin
) -> None:
    """Each lease that it does not take would be one more in the ledger."""
    ledger.runs.create("r1", Spec(requests=100), 0.0)
    record(roster, "w1")
    broker.answers = False
    await dispatcher.step(0.0, 1.0)
    assert ledger.leases.fetch_active("r1") == []
    assert not dispatcher.has_more
    broker.answers = True
    await dispatcher.step(0.5, 1.5)
    assert len(broker.leases) == len(ledger.leases.fetch_active("r1")) > 0


@pytest.mark.parametrize("state", [RunState.PAUSING, RunState.CANCELLING, RunState.FAILED])
async def test_nothing_more_is_dealt_of_a_run_that_was_stopped_meanwhile(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin, state: RunState
) -> None:
    """The broker takes its time, and somebody stops the run while leases are sent; those are called back."""
    ledger.runs.create("r1", Spec(requests=100, range_size=10), 0.0)
    record(roster, "w1", "w2")

    def stop(_: Lease) -> bool:
        if not broker.leases:
            ledger.runs.change_state("r1", state, 1.0)
        return True

    broker.on_send = stop
    await dispatcher.step(0.0, 0.0)
    await dispatcher.step(0.5, 0.5)
    assert len(broker.leases) == 4
    assert len(ledger.leases.fetch_active("r1")) == 4


@pytest.mark.parametrize("state", [RunState.PAUSING, RunState.CANCELLING])
async def test_the_order_to_stop_is_repeated_until_nothing_is_out(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin, state: RunState,
    make_report: Any,
) -> None:  # fmt: skip
    """It is sent once a second because it may be lost, for the active leases and no later ones."""
    ledger.runs.create("r1", Spec(requests=100, range_size=10, grace_s=7.0), 0.0)
    record(roster, "w1")
    await dispatcher.step(0.0, 0.0)
    ledger.runs.change_state("r1", state, 1.0)
    for now in (1.0, 1.5, 1.9, 2.0, 2.9, 3.0):
        await dispatcher.step(now, now)
    assert broker.stops == [("r1", 2, 7.0)] * 3
    assert len(broker.leases) == 2
    leases = ledger.leases.fetch_active("r1")
    ledger.leases.apply([make_report(lease, done=lease.start) for lease in leases], 4.0)
    assert await dispatcher.step(9.0, 9.0) is None
    assert len(broker.stops) == 3


async def test_the_next_run_begins_when_the_first_is_over(
    dispatcher: Dispatcher, ledger: Ledger, roster: Roster, broker: BrokerTwin, make_report: MakeReport
) -> None:
    """They begin one after the other, in the order in which they were submitted."""
    ledger.runs.create("r1", Spec(requests=10), 0.0)
    ledger.runs.create("r2", Spec(requests=10), 1.0)
    record(roster, "w1")
    await dispatcher.step(2.0, 2.0)
    await dispatcher.step(3.0, 3.0)
    assert [lease.run for lease in broker.leases] == ["r1"]
    assert ledger.runs.fetch("r2").state == RunState.PENDING
    ledger.leases.apply([make_report(ledger.leases.fetch_active("r1")[0])], 4.0)
    await dispatcher.step(5.0, 5.0)
    assert [lease.run for lease in broker.leases] == ["r1", "r2"]
    assert ledger.runs.fetch("r2").state == RunState.RUNNING
