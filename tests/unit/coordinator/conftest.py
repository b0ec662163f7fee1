"""A ledger in a new folder, a run in it, and what workers say of its leases."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from tests.kit.coordinators.leases import cut_lease

from oku_coordinator.assembly import Assembly
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.storage.records import LeaseRecord, RunRecord
from oku_coordinator.settings import CoordinatorSettings
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.run_state import RunState
from oku_core.messaging.lease import Claim, Report
from oku_core.spec.spec import Spec

settings.register_profile("oku", deadline=None)
settings.load_profile("oku")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A new ledger."""
    ledger = Ledger(path)
    yield ledger
    ledger.close()


@pytest.fixture
def begin_run(ledger: Ledger) -> Callable[..., RunRecord]:
    """Enters a run at 0 s and lets it begin at 1 s."""

    def begin(run: str = "r1", requests: int = 100, **spec: Any) -> RunRecord:
        ledger.runs.create(run, Spec(requests=requests, **spec), 0.0)
        return ledger.runs.change_state(run, RunState.RUNNING, 1.0)

    return begin


@pytest.fixture
def cut(ledger: Ledger, begin_run: Callable[..., RunRecord]) -> Callable[..., LeaseRecord]:
    """Cuts a lease at 2 s, of a run that is made when it is not there."""

    def cut(size: int = 10, run: str = "r1", requests: int = 100, now: float = 2.0) -> LeaseRecord:
        if run not in {record.run for record in ledger.runs.fetch_page()}:
            begin_run(run, requests)
        lease = cut_lease(ledger, run, size, now)
        assert lease is not None
        return lease

    return cut


@pytest.fixture
def make_claim() -> Callable[..., Claim]:
    """Makes the claim of a lease, by worker w1 at 3 s, changed as wanted."""

    def make(lease: LeaseRecord, /, **changes: Any) -> Claim:
        claim = Claim(lease=lease.id, execution="e1", worker="w1", incarnation="b1", at=3.0)
        return msgspec.structs.replace(claim, **changes)

    return make


@pytest.fixture
def make_report() -> Callable[..., Report]:
    """Makes the report of worker w1 on a lease: all was ok, in a millisecond each; changed as wanted."""

    def make(
        lease: LeaseRecord, /, done: int | None = None, unfinished: Sequence[int] = (), **changes: Any
    ) -> Report:
        done = lease.stop if done is None else done
        covered = done - lease.start - len(unfinished)
        latency = Histogram()
        for _ in range(covered):
            latency.record(1000)
        report = Report(
            lease=lease.id,
            execution="e1",
            worker="w1",
            incarnation="b1",
            start=lease.start,
            done=done,
            unfinished=list(unfinished),
            outcomes=[covered, 0, 0, 0, 0, 0],
            statuses={"200": covered} if covered else {},
            bytes_received=13 * covered,
            latency=latency.build_latency(),
            started_at=3.0,
            ended_at=4.0,
            cpu_s=0.5,
            peak_rss_mb=80.0,
        )
        return msgspec.structs.replace(report, **changes)

    return make


@pytest.fixture
def coordinator_settings(tmp_path: Path) -> CoordinatorSettings:
    """Settings of a coordinator whose broker is never asked."""
    return CoordinatorSettings(
        broker_url="redis://127.0.0.1:1", message_key=b"k" * 16, data_dir=tmp_path, token="t"
    )


@pytest.fixture
def parts(coordinator_settings: CoordinatorSettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Assembly]:
    """The parts of a coordinator that was not started; it hears its workers, and tells them nothing."""
    parts = Assembly(coordinator_settings)
    parts.inbound.progress.is_connected = True
    monkeypatch.setattr(parts.rounds.interval_announcer, "step", lambda *_: None)
    yield parts
    parts.close()
