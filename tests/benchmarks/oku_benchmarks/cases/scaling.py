"""How cost grows with workers: a real coordinator and a real broker, 10 to 10,000 simulated workers.

Each worker does 667 requests/s, as in the posts' own case, with leases that last ten seconds, or a hundred
where there are ten thousand workers, and says how far it is as often as the coordinator wants it. The run
never ends within the window that is looked at.
"""

import asyncio
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

from oku_benchmarks.cases.scaling_plot import draw_scaling
from oku_benchmarks.cases.scaling_step import Delay, Step
from oku_benchmarks.documents.attachments import open_kept
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.vitals import Vitals
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.simulation.simulated_stack import Stack, run_stack
from oku_benchmarks.simulation.simulated_workers import Look
from oku_cli.backends.client import Client
from oku_cli.backends.coordinator_ref import Endpoint
from oku_core.accounting.histogram import find_rank

RATE_RPS = 667
_REQUESTS = 10**12
_DEAL_LIMIT_S = 240.0
_SETTLE_S, _SETTLE_WORKER_S = 15.0, 0.02
"""Until then, and so much longer for each worker, a coordinator learns how fast they are and deals more."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All steps, with rising numbers of workers."""

    steps: list[Step]


def measure(plan: Plan, folder: Path) -> Results:
    """All steps."""
    steps = []
    for workers, lease_s, window_s in plan.scaling_steps:
        step_folder = folder / str(workers)
        step_folder.mkdir()
        step = _measure_step(step_folder, workers, lease_s, window_s)
        log(
            f"  {step.workers:,} workers: {step.checkpoints_per_s:.1f} checkpoints/s,"
            f" each {step.checkpoint_s:.0f} s,"
            f" {step.progress_per_s:.0f} events/s, {step.coordinator_cpu:.1%} of a core,"
            f" {step.coordinator_rss_mb:.0f} MB, confirmed after {step.confirm.p50_ms:.0f} ms,"
            f" {step.confirm.p99_ms:.0f} ms, workers waited {step.waited_share:.2%} of their time"
        )
        steps.append(step)
    draw_scaling(open_kept(folder) / "scaling.svg", steps)
    return Results(steps=steps)


@dataclass(frozen=True)
class _Look:
    """What is known at one end of the window."""

    at: float
    vitals: dict[str, Vitals]
    progress: float


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulated workers say at their end."""

    heartbeat_s: float
    checkpoint_s: float
    looks: list[Look]
    confirmed: list[tuple[float, float]]


def _measure_step(folder: Path, workers: int, lease_s: float, window_s: float) -> Step:
    with run_stack(folder, workers, RATE_RPS) as stack:
        endpoint = stack.wait_until_ready()
        asyncio.run(_submit(endpoint, round(lease_s * RATE_RPS)))
        dealt_s = _wait_until_dealt(stack, workers)
        time.sleep(_SETTLE_S + _SETTLE_WORKER_S * workers)
        begin = asyncio.run(_look(stack, endpoint))
        time.sleep(window_s)
        end = asyncio.run(_look(stack, endpoint))
        stack.end_workers()
        time.sleep(1.0)
    said = msgspec.json.decode(stack.said.read_bytes(), type=_Said)
    looks = [look for look in said.looks if begin.at <= look.at <= end.at]
    if len(looks) < 2:
        raise BenchmarkError("the simulated workers were too busy to look at themselves")
    length_s, looked_s = end.at - begin.at, looks[-1].at - looks[0].at

    def share(name: str) -> float:
        return round((end.vitals[name].cpu_s - begin.vitals[name].cpu_s) / length_s, 4)

    return Step(
        workers=workers,
        lease_s=lease_s,
        window_s=round(length_s, 1),
        dealt_s=round(dealt_s, 1),
        checkpoint_s=said.checkpoint_s,
        checkpoints_per_s=round((looks[-1].checkpoints - looks[0].checkpoints) / looked_s, 1),
        progress_per_s=round((end.progress - begin.progress) / length_s, 1),
        progress_sent_per_s=round(workers / said.heartbeat_s, 1),
        coordinator_cpu=share("coordinator"),
        coordinator_rss_mb=round(end.vitals["coordinator"].rss_mb, 1),
        coordinator_peak_mb=round(end.vitals["coordinator"].peak_rss_mb, 1),
        broker_cpu=share("broker"),
        broker_peak_mb=round(end.vitals["broker"].peak_rss_mb, 1),
        workers_cpu=share("workers"),
        confirm=_build_delay([took_s for at, took_s in said.confirmed if begin.at <= at <= end.at]),
        waited_share=round((looks[-1].waited_s - looks[0].waited_s) / looked_s / workers, 5),
    )


async def _submit(endpoint: Endpoint, range_size: int) -> str:
    # Nobody asks this address: simulated workers send nothing.
    values = {
        "requests": _REQUESTS, "url": "http://127.0.0.1:9/{i}", "concurrency": 1000, "range-size": range_size,
    }  # fmt: skip
    async with Client(endpoint) as client:
        return await client.submit(values)


def _wait_until_dealt(stack: Stack, workers: int) -> float:
    """How long it takes until all workers have leases."""
    began = time.monotonic()
    while time.monotonic() - began < _DEAL_LIMIT_S:
        stack.look()
        sql = "SELECT count(DISTINCT worker) FROM leases WHERE state = 'active'"
        if _count(stack.ledger, sql) >= workers:
            return time.monotonic() - began
        time.sleep(0.5)
    raise BenchmarkError(f"{workers} workers did not have their leases within {_DEAL_LIMIT_S:.0f} s")


async def _look(stack: Stack, endpoint: Endpoint) -> _Look:
    headers = {"Authorization": f"Bearer {endpoint.token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{endpoint.url}/metrics") as response,
    ):
        text = await response.text()
    return _Look(
        at=time.time(),
        vitals=stack.look(),
        progress=_read_metric(text, "oku_progress_total"),
    )


def _read_metric(text: str, name: str) -> float:
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    if match is None:
        raise BenchmarkError(f"the coordinator has no metric {name}")
    return float(match[1])


def _count(ledger: Path, sql: str) -> int:
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
        return int(database.execute(sql).fetchone()[0])


def _build_delay(seconds: list[float]) -> Delay:
    if len(seconds) < 2:
        raise BenchmarkError("too few checkpoints were confirmed to measure their delay")
    ordered = sorted(seconds)
    p50, p99 = (ordered[find_rank(quantile, len(ordered)) - 1] for quantile in (0.5, 0.99))
    return Delay(p50_ms=round(1000 * p50, 1), p99_ms=round(1000 * p99, 1))
