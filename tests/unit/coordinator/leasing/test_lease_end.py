from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_delivery
from tests.kit.coordinators.leases import (
    BeginRun,
    apply_batches,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
)
from tests.kit.coordinators.transactions import commit_after_next_read, read

from oku_coordinator.leasing.lease_end import LeaseEnd
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.tables.slice_table import count_pending
from oku_coordinator.workers.liveness import Roster
from oku_core.messaging.lease import read_lease_number
from oku_core.spec.spec import Engine


@pytest.fixture
def broker() -> BrokerTwin:
    """Notes what workers are told."""
    return BrokerTwin()


@pytest.fixture
def ender(ledger: Ledger, broker: BrokerTwin) -> LeaseEnd:
    """Of this ledger."""
    return LeaseEnd(ledger=ledger, delivery=build_delivery(ledger, broker, Roster(10.0)))


def deal(ledger: Ledger, size: int) -> LeaseRecord:
    """Deal a lease."""
    return deal_lease(ledger, "r1", size, 2.0)


def cover(ledger: Ledger, lease: LeaseRecord, done: int, **changes: Any) -> None:
    """A worker says that it has done so much, and nothing of the end."""
    part = msgspec.structs.replace(build_part(done), statuses={})  # iterations have none
    checkpoint = build_checkpoint(lease, done, is_final=False, parts=[part], **changes)
    apply_batches(ledger, [build_batch(lease, checkpoint)], 3.0)


def list_told(broker: BrokerTwin) -> list[tuple[str, dict[str, int]]]:
    """Who was told of which ends."""
    return [(control.incarnation, dict(control.ends)) for control in broker.controls]


def test_leases_that_are_kept_open_are_ended_when_all_is_done(
    ledger: Ledger, broker: BrokerTwin, ender: LeaseEnd, begin_run: BeginRun
) -> None:
    """Not before: there may be more to do for their workers. It is repeated, as it may be lost."""
    run = begin_run(requests=10, engine=Engine.LOCUST)
    first = deal(ledger, 6)
    cover(ledger, first, 6)
    ender.end_kept(run, 0.0)
    second = deal(ledger, 4)
    ender.end_kept(run, 1.0)
    cover(ledger, second, 3)
    ender.end_kept(run, 2.0)
    assert list_told(broker) == []
    cover(ledger, second, 4, sequence=2)
    for now in (3.0, 3.1, 3.6):
        ender.end_kept(run, now)
    ends = {first.id: 6, second.id: 4}
    assert list_told(broker) == [(first.incarnation, ends)] * 2


def test_leases_are_ended_by_one_state_of_the_ledger(
    ledger: Ledger,
    broker: BrokerTwin,
    ender: LeaseEnd,
    begin_run: BeginRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A checkpoint that leaves a hole may be committed between any two transactions: there is more to do."""
    run = begin_run(requests=10, engine=Engine.LOCUST)
    cover(ledger, deal(ledger, 6), 6)
    second = deal(ledger, 4)

    def leave_hole() -> None:
        part = msgspec.structs.replace(build_part(3), statuses={})
        checkpoint = build_checkpoint(second, 3, end=3, parts=[part])
        apply_batches(ledger, [build_batch(second, checkpoint)], 3.0)

    commit_after_next_read(monkeypatch, ledger, leave_hole)
    for now in (0.0, 1.0):
        ender.end_kept(run, now)
    assert read(ledger, count_pending, "r1") == 1
    assert list_told(broker) == []


def test_other_engines_keep_nothing_open(
    ledger: Ledger, broker: BrokerTwin, ender: LeaseEnd, begin_run: BeginRun
) -> None:
    """Their last leases end by themselves."""
    run = begin_run(requests=10)
    cover(ledger, deal(ledger, 10), 10)
    ender.end_kept(run, 0.0)
    assert list_told(broker) == []


def test_an_order_to_stop_is_repeated_each_second_and_sent_at_once_for_another_time(
    ledger: Ledger, broker: BrokerTwin, ender: LeaseEnd, begin_run: BeginRun
) -> None:
    """A run that ends by time may be paused just before; without an open lease there is nothing to stop."""
    run = begin_run(requests=10)
    ender.stop(run, 0.0, 50.0)
    lease = deal(ledger, 10)
    assert broker.stops == []
    for now, at in ((1.0, 50.0), (1.9, 50.0), (2.0, 50.0), (2.1, 40.0), (2.5, 40.0)):
        ender.stop(run, now, at)
    assert broker.stop_times == [50.0, 50.0, 40.0]
    assert set(broker.stops) == {("r1", read_lease_number(lease.id), run.drain_s)}
