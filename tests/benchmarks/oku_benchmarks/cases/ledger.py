"""The ledger of a hundred million requests: a real coordinator and a real broker, simulated workers.

The run is cut as the posts' own case would be: ten workers, each with 667 requests/s and so leases of 10 s
and 6,667 requests. Faster workers have larger leases, and so a smaller ledger. Time is compressed: what
would take 4.2 hours goes through in about a minute.
"""

import asyncio
import sqlite3
import time
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.simulation.simulated_stack import run_stack
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_core.summary.summary import Summary

WORKERS = 10
RANGE_SIZE = 6_667
REAL_RATE_RPS = 666.7
"""Of one worker in the posts' own case, where it has no simulation."""
_TIMEOUT_S = 600.0
_MB = 1e6


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    requests: int
    workers: int
    leases: int
    took_s: float
    ledger_mb: float
    """When all processes have ended."""
    ledger_while_open_mb: float
    """At the end of the run, with the write-ahead log beside it."""
    coordinator_cpu_s: float
    coordinator_rss_mb: float
    """At the end of the run."""
    coordinator_peak_mb: float
    broker_peak_mb: float


def measure(plan: Plan, folder: Path) -> Results:
    """One run."""
    with run_stack(folder, WORKERS, plan.ledger_requests / plan.ledger_s / WORKERS) as stack:
        began = time.monotonic()
        summary = asyncio.run(_carry_out(stack.wait_until_ready(), plan.ledger_requests))
        took_s = time.monotonic() - began
        vitals = stack.look()
        open_mb = sum(path.stat().st_size for path in stack.data.glob("ledger.sqlite3*")) / _MB
    if summary.accounted != plan.ledger_requests or summary.resent_at_most:
        raise BenchmarkError(f"{summary.accounted} accounted, at most {summary.resent_at_most} sent again")
    results = Results(
        requests=plan.ledger_requests,
        workers=WORKERS,
        leases=count_leases(stack.ledger),
        took_s=round(took_s, 1),
        ledger_mb=round(stack.ledger.stat().st_size / _MB, 3),
        ledger_while_open_mb=round(open_mb, 3),
        coordinator_cpu_s=round(vitals["coordinator"].cpu_s, 2),
        coordinator_rss_mb=round(vitals["coordinator"].rss_mb, 1),
        coordinator_peak_mb=round(vitals["coordinator"].peak_rss_mb, 1),
        broker_peak_mb=round(vitals["broker"].peak_rss_mb, 1),
    )
    log(
        f"  {results.leases:,} leases in {took_s:.0f} s: {results.ledger_mb} MB,"
        f" coordinator {results.coordinator_cpu_s} s of processor, {results.coordinator_peak_mb} MB"
    )
    return results


async def _carry_out(endpoint: Endpoint, requests: int) -> Summary:
    # Nobody asks this address: simulated workers send nothing.
    values = {
        "requests": requests, "url": "http://127.0.0.1:9/{i}", "concurrency": 1000, "range-size": RANGE_SIZE,
    }  # fmt: skip
    async with asyncio.timeout(_TIMEOUT_S), Client(endpoint) as client:
        run = await client.submit(values)
        async for item in client.follow(run):
            if isinstance(item, Summary):
                return item
    raise BenchmarkError("the coordinator ended before the run did")


def count_leases(ledger: Path) -> int:
    """How many leases a ledger has seen."""
    database = sqlite3.connect(ledger)
    try:
        return int(database.execute("SELECT count(*) FROM leases").fetchone()[0])
    finally:
        database.close()
