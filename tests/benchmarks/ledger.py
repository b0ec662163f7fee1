"""The ledger of a hundred million requests: a real coordinator and a real broker, simulated workers.

The run is cut as the posts' own case would be: ten workers, each with 667 requests/s and so leases of 10 s
and 6,667 requests. Faster workers have larger leases, and so a smaller ledger. Time is compressed: what
would take 4.2 hours goes through in about a minute.
"""

import asyncio
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from oku_cli import valkey
from oku_cli.child import Child
from oku_cli.client import Client
from oku_cli.data_dir import Endpoint
from oku_core.summary import Summary

from .error import BenchmarkError
from .plan import Plan
from .progress import log
from .turn import CONTESTANTS
from .vitals import Vitals, read_vitals

WORKERS = 10
RANGE_SIZE = 6_667
REAL_RATE_RPS = 666.7
"""Of one worker in the posts' own case, where it has no simulation."""
_READY_S = 20.0
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
    data, socket = folder / "data", valkey.choose_socket(folder)
    data.mkdir()
    rate_rps = plan.ledger_requests / plan.ledger_s / WORKERS
    with _run_stack(folder, data, socket, rate_rps) as (endpoint, children):
        began = time.monotonic()
        summary = asyncio.run(_carry_out(endpoint, plan.ledger_requests))
        took_s = time.monotonic() - began
        vitals = {name: _look(child) for name, child in children.items()}
        open_mb = sum(path.stat().st_size for path in data.glob("ledger.sqlite3*")) / _MB
    if summary.accounted != plan.ledger_requests or summary.resent_at_most:
        raise BenchmarkError(f"{summary.accounted} accounted, at most {summary.resent_at_most} sent again")
    results = Results(
        requests=plan.ledger_requests,
        workers=WORKERS,
        leases=_count_leases(data / "ledger.sqlite3"),
        took_s=round(took_s, 1),
        ledger_mb=round((data / "ledger.sqlite3").stat().st_size / _MB, 3),
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


@contextmanager
def _run_stack(
    folder: Path, data: Path, socket: Path, rate_rps: float
) -> Iterator[tuple[Endpoint, Mapping[str, Child]]]:
    """Broker, coordinator and simulated workers, from ready to ended."""
    broker_url, token, ready = valkey.build_url(socket), secrets.token_urlsafe(24), folder / "api.address"
    commands = {
        "broker": list(valkey.build_command(valkey.find_server(), folder, socket)),
        "coordinator": [
            sys.executable, "-m", "oku_cli", "coordinator", "--broker-url", broker_url,
            "--data-dir", str(data), "--port", "0", "--ready-file", str(ready),
        ],
        "workers": [
            sys.executable, str(CONTESTANTS / "simulated_workers.py"), broker_url, str(WORKERS),
            str(rate_rps), str(folder / "workers.json"),
        ],
    }  # fmt: skip
    environment = os.environ | {"OKU_TOKEN": token}
    children = {
        name: Child(name, command, folder / f"{name}.log", environment) for name, command in commands.items()
    }
    try:
        for child in children.values():
            child.start()
        yield Endpoint(f"http://{_wait_for(ready, children)}", token), children
    finally:
        # The broker, which came first, ends last.
        for child in reversed(children.values()):
            child.terminate()
            if not child.wait(10.0):
                child.kill()
                child.wait(10.0)


def _wait_for(ready: Path, children: Mapping[str, Child]) -> str:
    deadline = time.monotonic() + _READY_S
    while not ready.exists():
        dead = [child for child in children.values() if child.find_death() is not None]
        if dead or time.monotonic() > deadline:
            child = (dead or list(children.values()))[0]
            raise BenchmarkError(f"{child.name} is not ready: {child.read_last_line()}")
        time.sleep(0.05)
    return ready.read_text().strip()


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


def _look(child: Child) -> Vitals:
    vitals = read_vitals(child.pid)
    if vitals is None:
        raise BenchmarkError(f"{child.name} has ended: {child.read_last_line()}")
    return vitals


def _count_leases(ledger: Path) -> int:
    database = sqlite3.connect(ledger)
    try:
        return int(database.execute("SELECT count(*) FROM leases").fetchone()[0])
    finally:
        database.close()
