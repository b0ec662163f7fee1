import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_file_access
from tests.kit.coordinators.leases import BeginRun, Deal

from oku_coordinator.leasing.delivery import Delivery
from oku_coordinator.leasing.shares import Shares
from oku_coordinator.ledger import Ledger
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.progress import Progress
from oku_core.spec.request_template import ask_servers

SERVERS = ["http://s1:1", "http://s2:2/"]


@pytest.fixture
def broker() -> BrokerTwin:
    """An empty broker."""
    return BrokerTwin()


@pytest.fixture
def roster() -> Roster:
    """Nobody lives yet."""
    return Roster(10.0)


@pytest.fixture
def delivery(ledger: Ledger, broker: BrokerTwin, roster: Roster) -> Delivery:
    """Leases of runs against two delay servers."""
    return Delivery(broker, roster, ledger, SERVERS, build_file_access())


def record(roster: Roster, worker: str = "w1", ahead_s: float = 0.0, specs: tuple[str, ...] = ()) -> None:
    """A worker speaks."""
    progress = Progress(worker=worker, incarnation=f"b{worker[1:]}", at=ahead_s, specs=list(specs))
    roster.record(progress, 0.0, 0.0)


def test_each_worker_gets_its_leases_in_one_message(
    delivery: Delivery, broker: BrokerTwin, roster: Roster, begin_run: BeginRun, deal: Deal
) -> None:
    """With what they are, how far it may go, and the time of its own clock after which they are stale."""
    run = begin_run()
    record(roster, "w1", ahead_s=20.0)
    record(roster, "w2")
    first, second, third = deal(10, limit=4), deal(20), deal(30, worker="w2")
    delivery.send(run, [first, third, second], Shares("r1"))
    assert [(batch.incarnation, batch.start_by) for batch in broker.batches] == [("b1", 82.0), ("b2", 62.0)]
    assert [(lease.id, lease.ranges, lease.limit) for lease in broker.leases] == [
        (first.id, [(0, 10)], 4),
        (second.id, [(10, 30)], 20),
        (third.id, [(30, 60)], 30),
    ]


def test_the_spec_travels_until_the_worker_says_that_it_knows_it(
    delivery: Delivery, broker: BrokerTwin, roster: Roster, begin_run: BeginRun, deal: Deal
) -> None:
    """That of another run is no help."""
    run = begin_run()
    lease = deal()
    for specs in ((), ("r0",), ("r0", "r1")):
        record(roster, specs=specs)
        delivery.send(run, [lease], Shares("r1"))
    assert [batch.spec for batch in broker.batches] == [
        ask_servers(run.spec, run.count_name, SERVERS)
    ] * 2 + [None]


def test_leases_of_different_ages_are_stale_at_different_times(
    delivery: Delivery, broker: BrokerTwin, roster: Roster, begin_run: BeginRun, deal: Deal
) -> None:
    """What is sent again keeps its time: the worker may have had it and forgotten it since."""
    run = begin_run()
    record(roster)
    delivery.send(run, [deal(now=2.0), deal(now=30.0)], Shares("r1"))
    assert [batch.start_by for batch in broker.batches] == [62.0, 90.0]


def test_a_worker_that_has_not_spoken_is_sent_nothing(
    delivery: Delivery, broker: BrokerTwin, begin_run: BeginRun, deal: Deal
) -> None:
    """Nobody knows its clock."""
    run = begin_run()
    delivery.send(run, [deal()], Shares("r1"))
    assert broker.batches == []


def test_a_lease_whose_wave_is_over_is_not_sent(
    delivery: Delivery, broker: BrokerTwin, roster: Roster, begin_run: BeginRun, deal: Deal
) -> None:
    """Its last checkpoint came in another thread after it was found to be missing."""
    run = begin_run()
    record(roster)
    closed, other = msgspec.structs.replace(deal(10), wave=7), deal(20)
    delivery.send(run, [closed], Shares("r1"))
    assert broker.batches == []
    delivery.send(run, [closed, other], Shares("r1"))
    assert [lease.id for lease in broker.leases] == [other.id]


def test_leases_are_drained_by_an_end_at_their_beginning(delivery: Delivery, broker: BrokerTwin) -> None:
    """One message goes to each process."""
    delivery.drain([("b1", "l1"), ("b2", "l2"), ("b1", "l3")])
    assert broker.ends == [("b1", {"l1": 0, "l3": 0}), ("b2", {"l2": 0})]
