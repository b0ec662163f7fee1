"""A ledger of 10**12 requests: a real coordinator, simulated workers, and `kill -9` in the middle.

Workers with 20,000 requests/s take leases of 2 million at most, so that such a run has half a million of
them and lasts for hours. Here leases are larger and time is compressed; what grows, grows with the leases.
"""

import asyncio
import time
from pathlib import Path

import aiohttp
import msgspec
from tests.kit.coordinators.leases import apply_batches, build_batch, deal_lease
from tests.kit.coordinators.transactions import change, check_ledger
from tests.kit.outcomes import make_counts

from oku_benchmarks.cases.ledger import count_leases
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.simulation.simulated_stack import Stack, run_stack
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import Time
from oku_core.accounting.run_state import RunState
from oku_core.messaging.checkpoint import Checkpoint, LeaseFigures, Part
from oku_core.spec.spec import Spec
from oku_core.summary.summary import Summary

WORKERS = 200
_HOLES = 100_000
_TIMEOUT_S = 400.0
_MB = 1e6


class Holes(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was stopped with very many requests in flight: each left a hole of one index."""

    holes: int
    ledger_mb: float
    open_s: float
    """From a closed file to an account that has been checked, over all slices."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    requests: int
    workers: int
    leases: int
    took_s: float
    ready_after_kill_s: float
    """From the start of the new coordinator until its API is ready."""
    resent_at_most: int
    ledger_mb: float
    coordinator_peak_mb: float
    broker_peak_mb: float
    holes: Holes


def measure(plan: Plan, folder: Path) -> Results:
    """One run, and one ledger with holes."""
    range_size = plan.trillion_requests // plan.trillion_leases
    with run_stack(folder, WORKERS, plan.trillion_requests / plan.trillion_s / WORKERS) as stack:
        began = time.monotonic()
        summary, ready_s = asyncio.run(_carry_out(stack, plan.trillion_requests, range_size))
        took_s = time.monotonic() - began
        vitals = stack.look()
    if summary.accounted != plan.trillion_requests:
        raise BenchmarkError(f"{summary.accounted} of {plan.trillion_requests} are accounted")
    results = Results(
        requests=plan.trillion_requests,
        workers=WORKERS,
        leases=count_leases(stack.ledger),
        took_s=round(took_s, 1),
        ready_after_kill_s=round(ready_s, 2),
        resent_at_most=summary.resent_at_most,
        ledger_mb=round(stack.ledger.stat().st_size / _MB, 2),
        coordinator_peak_mb=round(vitals["coordinator"].peak_rss_mb, 1),
        broker_peak_mb=round(vitals["broker"].peak_rss_mb, 1),
        holes=_measure_holes(folder / "holes.sqlite3"),
    )
    log(
        f"  {results.requests:,} requests, {results.leases:,} leases in {took_s:.0f} s:"
        f" {results.ledger_mb} MB, coordinator {results.coordinator_peak_mb} MB,"
        f" ready {ready_s:.2f} s after kill -9; {_HOLES:,} holes: {results.holes.ledger_mb} MB,"
        f" checked in {results.holes.open_s:.2f} s"
    )
    return results


async def _carry_out(stack: Stack, requests: int, range_size: int) -> tuple[Summary, float]:
    endpoint = stack.wait_until_ready()
    # Nobody asks this address: simulated workers send nothing.
    values = {
        "requests": requests, "url": "http://127.0.0.1:9/{i}", "concurrency": 1000, "range-size": range_size,
    }  # fmt: skip
    async with asyncio.timeout(_TIMEOUT_S):
        async with Client(endpoint) as client:
            run = await client.submit(values)
            async for item in client.follow(run):
                if isinstance(item, Summary) or item.sample.accounted >= requests // 2:
                    break
        began = time.monotonic()
        endpoint = stack.restart_coordinator()
        await _wait_until_ready(endpoint)
        ready_s = time.monotonic() - began
        async with Client(endpoint) as client:
            return await _wait_for_end(client, run), ready_s


async def _wait_until_ready(endpoint: Endpoint) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{endpoint.url}/readyz") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.005)


async def _wait_for_end(client: Client, run: str) -> Summary:
    async for item in client.follow(run):
        if isinstance(item, Summary):
            return item
    raise BenchmarkError("the coordinator ended before the run did")


def _measure_holes(path: Path) -> Holes:
    requests = 10**12
    ledger = Ledger(path)
    change(ledger, create_run, "holes", Spec(requests=requests, concurrency=_HOLES), 0.0)
    change(ledger, change_state, "holes", RunState.RUNNING, 1.0)
    lease = deal_lease(ledger, "holes", requests, 2.0)
    if lease is None:
        raise BenchmarkError("the ledger gave no lease")
    covered = requests - _HOLES
    latency = HistogramSnapshot(buckets=[1000, covered], sum_us=1000 * covered, min_us=1000, max_us=1000)
    outcomes = make_counts(covered)
    checkpoint = Checkpoint(
        lease=lease.id, sequence=1, done=requests, end=requests, in_flight=list(range(0, 10 * _HOLES, 10)),
        is_final=True, figures=LeaseFigures(started_at=2.0, ended_at=3.0), parts=[
            Part(
                outcomes=outcomes, statuses={"200": covered}, times={Time.LATENCY: latency},
                per_second={2: outcomes},
            )
        ],
    )  # fmt: skip
    apply_batches(ledger, [build_batch(lease, checkpoint)], 4.0)
    ledger.close()
    began = time.monotonic()
    ledger = Ledger(path)
    lengths = check_ledger(ledger, "holes")
    open_s = time.monotonic() - began
    ledger.close()
    if lengths.pending != _HOLES:
        raise BenchmarkError(f"{lengths.pending} are pending, {_HOLES} were left")
    return Holes(holes=_HOLES, ledger_mb=round(path.stat().st_size / _MB, 2), open_s=round(open_s, 3))
