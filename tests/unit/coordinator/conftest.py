"""A ledger in a new folder, a run in it, and what workers say of its leases."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.celery_listeners import find_listeners
from tests.kit.coordinators.fresh_ledger import open_ledger, place_ledger
from tests.kit.coordinators.leases import (
    Apply,
    BeginRun,
    Deal,
    MakeBatch,
    apply_batches,
    build_batch,
    build_checkpoint,
    deal_lease,
)
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.records import RunRecord
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_coordinator.settings import CoordinatorSettings
from oku_core.accounting.lease_state import MessageVerdict
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import CheckpointBatch
from oku_core.spec.spec import Spec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A new ledger."""
    ledger = open_ledger(path)
    yield ledger
    ledger.close()


@pytest.fixture
def begin_run(ledger: Ledger) -> BeginRun:
    """Enters a run at 0 s and lets it begin at 1 s."""

    def begin(run: str = "r1", requests: int = 100, **spec: Any) -> RunRecord:
        change(ledger, create_run, run, Spec(requests=requests, **spec), 0.0)
        return change(ledger, change_state, run, RunState.RUNNING, 1.0)

    return begin


@pytest.fixture
def deal(ledger: Ledger, begin_run: BeginRun) -> Deal:
    """Deals a lease at 2 s to worker w1, of a run that is made when it is not there."""

    def deal(
        size: int = 10, run: str = "r1", requests: int = 100, now: float = 2.0, **order: Any
    ) -> LeaseRecord:
        if run not in {record.run for record in read(ledger, fetch_runs)}:
            begin_run(run, requests)
        return deal_lease(ledger, run, size, now, **order)

    return deal


@pytest.fixture
def make_batch() -> MakeBatch:
    """Makes the message of a worker with one checkpoint of a lease: by default its last, and all was ok."""

    def make(lease: LeaseRecord, /, **changes: Any) -> CheckpointBatch:
        return build_batch(lease, build_checkpoint(lease, **changes))

    return make


@pytest.fixture
def apply(ledger: Ledger) -> Apply:
    """Takes in messages of workers and gives the verdicts; workers may take no more than they may."""

    def apply(batches: Sequence[CheckpointBatch], now: float, allowance: int = 0) -> list[MessageVerdict]:
        return apply_batches(ledger, batches, now, allowance)

    return apply


@pytest.fixture
def coordinator_settings(tmp_path: Path) -> CoordinatorSettings:
    """Settings of a coordinator whose broker is never asked."""
    return CoordinatorSettings(
        broker_url="redis://127.0.0.1:1", message_key=b"k" * 16, data_dir=tmp_path, token="t"
    )


@pytest.fixture
def parts(coordinator_settings: CoordinatorSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Assembly]:
    """The parts of a coordinator that was not started; it hears its workers, and tells them nothing."""
    place_ledger(coordinator_settings.ledger_path)
    parts = Assembly(coordinator_settings)
    find_listeners(parts).progress.is_connected = True
    monkeypatch.setattr(parts.main_loop.interval_announcer, "announce", lambda *_: None)
    yield parts
    parts.base.close()
