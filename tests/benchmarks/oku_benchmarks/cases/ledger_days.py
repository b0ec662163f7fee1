"""A ledger of many days: thousands of runs, and one run with millions of leases, in a real coordinator.

The ledger is made beforehand (`tests.kit.coordinators.long_ledger`). Then its long run is resumed and goes on
with a thousand simulated workers, which all die at once; meanwhile it is listed, shown and sent as a whole,
and somebody asks all the time whether the coordinator is there. Afterwards the commands read the ledger.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger

from oku_benchmarks.cases import ledger_calls
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.vitals import read_vitals
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.simulation.simulated_stack import Stack, run_stack
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_cli.process.child import Child
from oku_core.accounting.run_state import RunState

WORKERS = 1_000
_RATE_RPS = 100.0
"""Of each, so that a lease is 10 s of work."""
_IDLE_S = 5.0
_BUSY_S = 15.0
_LOOK_S = 3.0
_TIMEOUT_S = 150.0
_MB = 1e6


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """How long `/healthz` took to answer."""

    questions: int
    median_ms: float
    p99_ms: float
    longest_ms: float


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command that ran beside nothing else."""

    took_s: float
    peak_mb: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One ledger."""

    runs: int
    leases: int
    workers: int
    ledger_mb: float
    ready_s: float
    """From the start of the coordinator's process until its API is ready."""
    idle: Probe
    busy: Probe
    """While workers work."""
    losing: Probe
    """While they are found dead, and their leases are taken back."""
    leases_lost: int
    reading: Probe
    """While the history is sent."""
    history_mb: float
    history_s: float
    coordinator_peak_mb: float
    wal_peak_mb: float
    list: Command
    show: Command
    report: Command
    ledger: ledger_calls.Results
    """At last: it deletes the long run."""


def measure(plan: Plan, folder: Path) -> Results:
    """Make the ledger and use it."""
    data = folder / "data"
    data.mkdir()
    began = time.monotonic()
    make_long_ledger(
        data / "ledger.sqlite3", runs=plan.days_runs, leases=plan.days_leases, samples=plan.days_samples
    )
    ledger_mb = round((data / "ledger.sqlite3").stat().st_size / _MB, 1)
    log(f"  a ledger of {ledger_mb} MB, made in {time.monotonic() - began:.0f} s")
    with run_stack(folder, WORKERS, _RATE_RPS) as stack:
        figures = asyncio.run(_use(stack, folder))
        coordinator = stack.look_at("coordinator")
        wal_mb = _measure_wal_mb(stack)
    results = Results(
        runs=plan.days_runs + 1,
        leases=plan.days_leases,
        workers=WORKERS,
        ledger_mb=ledger_mb,
        coordinator_peak_mb=round(coordinator.peak_rss_mb, 1),
        wal_peak_mb=round(wal_mb, 1),
        list=_run_command(folder, "runs"),
        show=_run_command(folder, "show", LONG_RUN),
        report=_run_command(folder, "report", LONG_RUN, "-o", str(folder / "report.html")),
        ledger=ledger_calls.measure_calls(stack.ledger),
        **figures,
    )
    waits_ms = [probe.longest_ms for probe in (results.idle, results.busy, results.losing, results.reading)]
    log(
        f"  ready in {results.ready_s} s, {results.coordinator_peak_mb} MB, longest waits {waits_ms} ms,"
        f" {results.leases_lost:,} leases lost, history {results.history_mb} MB in {results.history_s} s,"
        f" report {results.report.took_s} s and {results.report.peak_mb} MB, longest call"
        f" {max(call.longest_ms for call in results.ledger.calls)} ms"
    )
    return results


async def _use(stack: Stack, folder: Path) -> dict[str, Any]:
    async with asyncio.timeout(_TIMEOUT_S):
        began = time.monotonic()
        endpoint = stack.restart_coordinator()
        await _wait_until_ready(endpoint)
        figures: dict[str, Any] = {"ready_s": round(time.monotonic() - began, 2)}
        async with Client(endpoint) as client:
            with _probe(endpoint, folder, "idle", figures):
                await asyncio.sleep(_IDLE_S)
            await client.resume(LONG_RUN)
            await _wait_for_workers(client)
            with _probe(endpoint, folder, "busy", figures):
                await asyncio.sleep(_BUSY_S)
                await client.fetch_summary(LONG_RUN)
            before = (await client.fetch_summary(LONG_RUN)).resent_at_most
            with _probe(endpoint, folder, "losing", figures):
                stack.kill_workers()
                await _wait_for_loss(client)
            lost = (await client.fetch_summary(LONG_RUN)).resent_at_most - before
            figures["leases_lost"] = lost // 1000
            await client.pause(LONG_RUN)
            with _probe(endpoint, folder, "reading", figures):
                began, size = time.monotonic(), 0
                async for line in client.read_run_history(LONG_RUN):
                    size += len(line) + 1
                figures |= {"history_mb": round(size / _MB, 1)}
                figures |= {"history_s": round(time.monotonic() - began, 1)}
        return figures


async def _wait_until_ready(endpoint: Endpoint) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{endpoint.url}/readyz") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.005)


async def _wait_for_workers(client: Client) -> None:
    async for item in client.follow(LONG_RUN):
        if getattr(item, "workers", 0) == WORKERS and item.state == RunState.RUNNING:
            return
    raise BenchmarkError("the run ended before all workers were there")


async def _wait_for_loss(client: Client) -> None:
    """Until all workers are dead, and a look at their leases later; those that wait in the queue stay."""
    async for item in client.follow(LONG_RUN):
        if getattr(item, "workers", 1) == 0:
            await asyncio.sleep(_LOOK_S)
            return
    raise BenchmarkError("the run ended before its leases were taken back")


@contextmanager
def _probe(endpoint: Endpoint, folder: Path, name: str, figures: dict[str, Any]) -> Iterator[None]:
    """Ask all the time for as long as the block lasts."""
    said = folder / f"probe-{name}.json"
    command = [sys.executable, "-m", "oku_benchmarks.simulation.probe", endpoint.url, str(said)]
    child = Child(f"probe-{name}", command, folder / f"probe-{name}.log", dict(os.environ))
    child.start()
    try:
        yield
    finally:
        child.terminate()
        child.wait(10.0)
    if not said.exists():
        raise BenchmarkError(f"{child.name} has ended: {child.read_last_line()}")
    figures[name] = msgspec.json.decode(said.read_bytes(), type=Probe)


def _measure_wal_mb(stack: Stack) -> float:
    """A write-ahead log keeps the largest size that it has had while its file is open."""
    return stack.ledger.with_name(stack.ledger.name + "-wal").stat().st_size / _MB


def _run_command(folder: Path, *arguments: str) -> Command:
    command = [sys.executable, "-m", "oku_cli", *arguments, "--data-dir", str(folder / "data")]
    child = Child(f"oku {arguments[0]}", command, folder / "commands.log", dict(os.environ))
    began, peak_mb = time.monotonic(), 0.0
    child.start()
    while child.is_alive:
        if vitals := read_vitals(child.pid):
            peak_mb = vitals.peak_rss_mb
        time.sleep(0.005)
    took_s = time.monotonic() - began
    if death := child.find_death():
        raise BenchmarkError(f"{child.name} has ended: {death}: {child.read_last_line()}")
    return Command(took_s=round(took_s, 2), peak_mb=round(peak_mb, 1))
