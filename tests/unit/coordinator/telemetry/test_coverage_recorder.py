import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.leases import Apply, Deal, MakeBatch, expire
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.history import put_coverage
from oku_coordinator.ledger.rules.lifecycle import change_state
from oku_coordinator.ledger.tables import outbox_table
from oku_coordinator.ledger.tables.lease_table import fetch_open_leases
from oku_coordinator.ledger.tables.outbox_table import fetch_batch
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.telemetry.coverage_recorder import COVERAGE_S, CoverageRecorder
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.run_state import RunState
from oku_core.process.supervision import Supervisor
from oku_core.results.lines import LineKind


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger whose runs are published."""
    ledger = open_ledger(path, publishes=True)
    yield ledger
    ledger.close()


def take(ledger: Ledger) -> list[dict[str, Any]]:
    """The lines of coverage in the outbox, which is empty afterwards."""
    lines = change(ledger, fetch_batch, 10_000, 10**9, 100.0)
    change(ledger, outbox_table.remove, lines)
    return [json.loads(line.text) for line in lines if line.kind == LineKind.COVERAGE]


def test_coverage_is_what_slices_and_lost_leases_are(
    ledger: Ledger,
    deal: Deal,
    make_batch: MakeBatch,
    apply: Apply,
) -> None:
    """Each part of the request space has a line."""
    apply([make_batch(deal(10))], 3.0)
    lost = deal(20)
    deal(30)
    expire(ledger, [lost.id], ExpiryReason.WORKER_LOST, 4.0)
    CoverageRecorder(ledger, lambda: 5.0).record()
    lines = take(ledger)
    sums = {name: sum(line[name] for line in lines) for name in ("accounted", "leased", "pending", "again")}
    assert len(lines) == 50
    assert sums == {"accounted": 10, "leased": 30, "pending": 60, "again": 20}


def test_a_run_that_is_not_active_has_none(ledger: Ledger, deal: Deal) -> None:
    """What was read while a run came to rest does not follow what it ended with."""
    recorder = CoverageRecorder(ledger, lambda: 5.0)
    recorder.record()
    deal(10)
    recorder.record()
    change(ledger, change_state, "r1", RunState.PAUSING, 6.0)
    assert len(take(ledger)) == 50
    expire(ledger, [lease.id for lease in read(ledger, fetch_open_leases, "r1")], ExpiryReason.DROPPED, 6.0)
    assert read(ledger, fetch_run, "r1").state == RunState.PAUSED
    change(ledger, put_coverage, "r1", 6.0, [{"part": "00"}])
    recorder.record()
    assert take(ledger) == []


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.1, COVERAGE_S), (2.0, 40.0)])
async def test_it_rests_by_how_long_it_took_whatever_the_clock_says(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, took_s: float, pause_s: float
) -> None:
    """The clock of the machine may be set by a day while it reads."""
    paused: list[float] = []
    resting = asyncio.Event()

    async def rest(seconds: float) -> None:
        paused.append(seconds)
        resting.set()
        await asyncio.Future()

    days, timer = count(0, 86_400), count(0.0, took_s)
    recorder = CoverageRecorder(ledger, lambda: float(next(days)), lambda: next(timer))
    monkeypatch.setattr("oku_coordinator.telemetry.coverage_recorder.asyncio.sleep", rest)
    recorder.start(Supervisor())
    await resting.wait()
    await recorder.end()
    assert paused == [pytest.approx(pause_s)]
