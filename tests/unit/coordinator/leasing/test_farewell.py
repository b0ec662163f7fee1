from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.kit.coordinators.broker_twin import BrokerTwin
from tests.kit.coordinators.dispatching import build_delivery
from tests.kit.coordinators.leases import (
    apply_batches,
    build_batch,
    build_checkpoint,
    build_part,
    deal_lease,
)

from oku_coordinator.leasing.farewell import Farewell
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.workers.liveness import Roster
from oku_core.spec.spec import Engine

BeginRun = Callable[..., RunRecord]


@pytest.fixture
def broker() -> BrokerTwin:
    """Notes what workers are told."""
    return BrokerTwin()


@pytest.fixture
def farewell(ledger: Ledger, broker: BrokerTwin) -> Farewell:
    """Of this ledger."""
    return Farewell(ledger=ledger, delivery=build_delivery(ledger, broker, Roster(10.0)))


def deal(ledger: Ledger, size: int) -> LeaseRecord:
    """Deal a lease."""
    lease = deal_lease(ledger, "r1", size, 2.0)
    assert lease is not None
    return lease


def cover(ledger: Ledger, lease: LeaseRecord, done: int, **changes: Any) -> None:
    """A worker says that it has done so much, and nothing of the end."""
    part = msgspec.structs.replace(build_part(done), statuses={})  # iterations have none
    checkpoint = build_checkpoint(lease, done, is_final=False, parts=[part], **changes)
    apply_batches(ledger, [build_batch(lease, checkpoint)], 3.0)


def list_told(broker: BrokerTwin) -> list[tuple[str, dict[str, int]]]:
    """Who was told of which ends."""
    return [(control.incarnation, dict(control.ends)) for control in broker.controls]


def test_leases_that_are_kept_open_are_ended_when_all_is_done(
    ledger: Ledger, broker: BrokerTwin, farewell: Farewell, begin_run: BeginRun
) -> None:
    """Not before: there may be more to do for their workers. It is repeated, as it may be lost."""
    run = begin_run(requests=10, engine=Engine.LOCUST)
    first = deal(ledger, 6)
    cover(ledger, first, 6)
    farewell.end_leases(run, 0.0)
    second = deal(ledger, 4)
    farewell.end_leases(run, 1.0)
    cover(ledger, second, 3)
    farewell.end_leases(run, 2.0)
    assert list_told(broker) == []
    cover(ledger, second, 4, sequence=2)
    for now in (3.0, 3.1, 3.6):
        farewell.end_leases(run, now)
    ends = {first.id: 6, second.id: 4}
    assert list_told(broker) == [(first.incarnation, ends)] * 2


def test_other_engines_keep_nothing_open(
    ledger: Ledger, broker: BrokerTwin, farewell: Farewell, begin_run: BeginRun
) -> None:
    """Their last leases end by themselves."""
    run = begin_run(requests=10)
    cover(ledger, deal(ledger, 10), 10)
    farewell.end_leases(run, 0.0)
    assert list_told(broker) == []
