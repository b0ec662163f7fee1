import pytest
from tests.kit.coordinators.celery_listeners import find_listeners
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.assembly import Assembly
from oku_coordinator.foundation import Platform
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage.storage_health import Space, StorageError, StorageFault
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_coordinator.settings import CoordinatorSettings
from oku_core.errors import UserError
from oku_core.spec.spec import Spec


def test_a_ledger_has_one_coordinator(parts: Assembly, coordinator_settings: CoordinatorSettings) -> None:
    """A second one waits for a while and is refused then."""
    with pytest.raises(UserError, match="another coordinator holds this ledger"):
        Assembly(coordinator_settings, Platform(lock_wait_s=0.0))
    assert read(parts.base.ledger, fetch_runs) == []


def test_a_coordinator_is_ready_when_broker_and_ledger_can_be_used(parts: Assembly) -> None:
    """It says what is missing, the ledger first: nothing works without it."""
    assert parts.base.troubles.find_obstacle() == "no broker"
    find_listeners(parts).checkpoints.is_connected = True
    assert parts.base.troubles.find_obstacle() == ""
    find_listeners(parts).checkpoints.refusal = "ResponseError: MISCONF"
    assert parts.base.troubles.find_obstacle() == "no broker"
    parts.base.ledger.storage.record_space(Space(0, 10))
    assert parts.base.troubles.find_obstacle() == "the ledger cannot be used: its disk is full"
    body, _ = parts.base.telemetry.metrics.expose()
    assert b"oku_ledger_usable 0.0" in body
    assert b'oku_ledger_faults_total{reason="disk_full"} 1.0' in body
    parts.base.ledger.storage.record_space(None)
    assert b"oku_ledger_usable 1.0" in parts.base.telemetry.metrics.expose()[0]


async def test_what_the_ledger_does_to_tasks_is_one_notice(parts: Assembly) -> None:
    """Each of them meets the same fault; other failures are listed beside it."""
    change(parts.base.ledger, create_run, "r1", Spec(requests=1), 0.0)
    find_listeners(parts).checkpoints.is_connected = True
    for name, error in (
        ("ticks", StorageError(StorageFault.DISK_FULL, "full")),
        ("dispatcher", StorageError(StorageFault.DISK_FULL, "full")),
        ("retention", RuntimeError("unforeseen")),
    ):
        parts.base.supervisor.enlist(name).record_failure(error)
    parts.base.ledger.storage.record_space(Space(0, 10))
    notices = parts.runs.build_notices(read(parts.base.ledger, fetch_run, "r1"))
    assert [notice.partition(":")[0] for notice in notices] == [
        "waiting for a worker to connect", "the ledger cannot be used", "retention",
    ]  # fmt: skip
