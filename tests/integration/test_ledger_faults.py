"""Every statement of every call of the ledger fails once in the course of a run."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty

import pytest
from tests.kit.brokers.broker import run_broker
from tests.kit.coordinators.coordinator import TOKEN
from tests.kit.coordinators.coordinator_in_process import running_coordinator
from tests.kit.coordinators.transactions import check_ledger, read
from tests.kit.faults.ledger_faults import ERRORS, FailPoint, LedgerFaults
from tests.kit.loki.fake_loki import run_loki
from tests.kit.workers.simulated_worker import SimulatedWorker

from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint, UnreachableError
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.tables.run_table import fetch_run
from oku_coordinator.loki.endpoint import LokiTarget
from oku_core.accounting.run_state import RunState
from oku_core.summary.summary import Summary

_REQUESTS = 20
_SPEC = {"requests": _REQUESTS, "url": "http://127.0.0.1:9/", "range-size": 10}
_WITHIN_S = 15
_LEARNING_RUNS = 4
_AT_ONCE = 3
"""So many fail points are armed in a run."""
_MOST_RUNS = 8
"""A fail point is armed in: whether a statement is executed in a run depends on time, too."""


async def test_a_write_that_fails_anywhere_hangs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails, the run completes, its followers are told so, and the account balances."""
    faults = LedgerFaults()
    monkeypatch.setattr("oku_coordinator.ledger.storage.schema.sqlite3.connect", faults.connect)
    monkeypatch.setattr("oku_core.process.supervision.FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr("oku_core.process.supervision.STEADY_S", 0.0)  # no pause grows
    runs: list[str] = []
    missed: list[FailPoint] = []
    with run_broker(tmp_path) as broker_url, run_simulated_worker(broker_url):
        async with (
            run_loki() as (_, loki_url),
            running_coordinator(
                broker_url, tmp_path / "data", worker_timeout_s=1.0, loki=LokiTarget(url=loki_url)
            ) as (
                _,
                api,
            ),
            Client(Endpoint(api.url, TOKEN)) as client,
        ):
            for _ in range(_LEARNING_RUNS):
                runs.append(await carry_out(client))
                await asyncio.sleep(0.3)
            armed_in: dict[FailPoint, int] = {}
            while faults.armed or any(point not in armed_in for point in faults.points):
                arm_next(faults, armed_in)
                runs.append(await carry_out(client, str(faults.armed)))
                for point in tuple(faults.armed):
                    armed_in[point] += 1
                    if armed_in[point] == _MOST_RUNS and faults.armed.pop(point, ""):
                        missed.append(point)
    ledger = Ledger(tmp_path / "data" / "ledger.sqlite3")
    for run in runs:
        assert read(ledger, fetch_run, run).state == RunState.COMPLETED
        assert check_ledger(ledger, run).accounted == _REQUESTS
    ledger.close()
    assert {
        "Runs.submit", "Turn.start", "RangeDealer._deal", "CheckpointReceiver._apply",
        "HistoryRecorder.keep_tick", "Runs.end",
    } <= {point.call for point in faults.points}  # fmt: skip
    # Some are executed only after another fault.
    assert len(missed) < 0.25 * len(faults.points), missed


def arm_next(faults: LedgerFaults, armed_in: dict[FailPoint, int]) -> None:
    """Arm further fail points, until there are as many as may be in a run or none is left."""
    for point in [each for each in tuple(faults.points) if each not in armed_in]:
        if len(faults.armed) == _AT_ONCE:
            return
        armed_in[point] = 0
        faults.armed[point] = ERRORS[len(armed_in) % len(ERRORS)]


async def carry_out(client: Client, armed: str = "") -> str:
    """Submit a run and follow it to its end, as `oku run` does; its id."""
    try:
        async with asyncio.timeout(_WITHIN_S):
            run = await submit(client)
            summary = await follow(client, run)
    except TimeoutError:
        raise AssertionError(f"the run hangs; armed before it were {armed}") from None
    assert (summary.state, summary.accounted) == (RunState.COMPLETED, _REQUESTS)
    assert summary.outcomes.ok == _REQUESTS
    return run


async def submit(client: Client) -> str:
    """Submit a run, and again if it was not taken."""
    while True:
        try:
            return (await client.submit(_SPEC)).run
        except UnreachableError:
            await asyncio.sleep(0.05)


async def follow(client: Client, run: str) -> Summary:
    """Follow a run although streams end; gives its summary at rest."""
    while True:
        try:
            async for item in client.follow(run):
                if isinstance(item, Summary):
                    return item
        except UnreachableError:
            pass
        await asyncio.sleep(0.05)


@contextmanager
def run_simulated_worker(broker_url: str) -> Iterator[None]:
    """Run a worker that executes every lease at once, until the end of the block."""
    ending = threading.Event()

    def work(worker: SimulatedWorker) -> None:
        while not ending.is_set():
            try:
                lease = worker.take_lease(0.5)
            except Empty:
                continue
            worker.execute(lease)

    with SimulatedWorker(broker_url) as worker:
        working = threading.Thread(target=work, args=[worker])
        working.start()
        try:
            yield
        finally:
            ending.set()
            working.join()
