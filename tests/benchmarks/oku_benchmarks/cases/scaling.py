"""How cost grows with workers: a real coordinator and a real broker, 10 to 10,000 simulated workers.

Each worker does 667 requests/s, as in the posts' own case, with leases that last ten seconds, or a hundred
where there are ten thousand workers. The run never ends within the window that is looked at.
"""

import asyncio
import json
import re
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

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
from oku_cli.remote.client import Client
from oku_cli.remote.endpoint import Endpoint

RATE_RPS = 667
_REQUESTS = 10**12
_DEAL_LIMIT_S = 240.0
_SETTLE_S = 2.0


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
            f"  {step.workers:,} workers: {step.reports_per_s:.1f} reports/s,"
            f" {step.progress_per_s:.0f} events/s, {step.coordinator_cpu:.1%} of a core,"
            f" {step.coordinator_rss_mb:.0f} MB, report to commit {step.commit.p50_ms:.0f} ms,"
            f" {step.commit.p99_ms:.0f} ms, to the next lease {step.dispatch.p50_ms:.0f} ms,"
            f" {step.dispatch.p99_ms:.0f} ms"
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
    commits: float
    commit_s: float


def _measure_step(folder: Path, workers: int, lease_s: float, window_s: float) -> Step:
    with run_stack(folder, workers, RATE_RPS) as stack:
        endpoint = stack.wait_until_ready()
        asyncio.run(_submit(endpoint, round(lease_s * RATE_RPS)))
        dealt_s = _wait_until_dealt(stack, workers)
        time.sleep(_SETTLE_S)
        begin = asyncio.run(_look(stack, endpoint))
        time.sleep(window_s)
        end = asyncio.run(_look(stack, endpoint))
        stack.end_workers()
        time.sleep(1.0)
    said = json.loads(stack.said.read_text())
    commit_s = (end.commit_s - begin.commit_s) / max(1, end.commits - begin.commits)
    reports = _read_reports(stack.ledger, begin.at, end.at)
    sent_at, taken_at = dict(said["reported"]), dict(said["taken"])
    length_s = end.at - begin.at

    def share(name: str) -> float:
        return round((end.vitals[name].cpu_s - begin.vitals[name].cpu_s) / length_s, 4)

    return Step(
        workers=workers,
        lease_s=lease_s,
        window_s=round(length_s, 1),
        dealt_s=round(dealt_s, 1),
        reports_per_s=round(len(reports) / length_s, 1),
        progress_per_s=round((end.progress - begin.progress) / length_s, 1),
        progress_sent_per_s=round(workers / said["heartbeat_interval_s"], 1),
        coordinator_cpu=share("coordinator"),
        coordinator_rss_mb=round(end.vitals["coordinator"].rss_mb, 1),
        coordinator_peak_mb=round(end.vitals["coordinator"].peak_rss_mb, 1),
        broker_cpu=share("broker"),
        broker_peak_mb=round(end.vitals["broker"].peak_rss_mb, 1),
        workers_cpu=share("workers"),
        commit=_build_delay([at + commit_s - sent_at[lease] for lease, at in reports]),
        dispatch=_build_delay(
            measure_dispatch(
                [at + commit_s for _, at in reports], _read_cuts(stack.ledger, begin.at, end.at), taken_at
            )
        ),
    )


def measure_dispatch(
    committed: Sequence[float], cuts: Sequence[tuple[str, float]], taken_at: dict[str, float]
) -> list[float]:
    """Seconds from each commit until a worker has the first lease that was cut after it.

    Leases are for whoever is free, so each report is paired with the next lease that none before it has.
    """
    times = [at for _, at in cuts]
    delays, position = [], 0
    for at in sorted(committed):
        position = max(position, bisect_left(times, at))
        if position == len(cuts):
            break
        if (taken := taken_at.get(cuts[position][0])) is not None:
            delays.append(taken - at)
        position += 1
    return delays


async def _submit(endpoint: Endpoint, range_size: int) -> str:
    # Nobody asks this address: simulated workers send nothing.
    values = {
        "requests": _REQUESTS, "url": "http://127.0.0.1:9/{i}", "concurrency": 1000, "range-size": range_size,
    }  # fmt: skip
    async with Client(endpoint) as client:
        return await client.submit(values)


def _wait_until_dealt(stack: Stack, workers: int) -> float:
    """How long it takes until as many leases are claimed as there are slots."""
    began = time.monotonic()
    while time.monotonic() - began < _DEAL_LIMIT_S:
        stack.look()
        sql = "SELECT count(*) FROM leases WHERE state = 'active' AND worker IS NOT NULL"
        # All slots are never seen taken at once: some leases are always on their way.
        if int(_select(stack.ledger, sql)[0][0]) >= 2 * workers * 0.98 - 1:
            return time.monotonic() - began
        time.sleep(0.5)
    raise BenchmarkError(f"{workers} workers did not have their leases within {_DEAL_LIMIT_S:.0f} s")


async def _look(stack: Stack, endpoint: Endpoint) -> _Look:
    async with aiohttp.ClientSession() as session, session.get(f"{endpoint.url}/metrics") as response:
        text = await response.text()
    return _Look(
        at=time.time(),
        vitals=stack.look(),
        progress=_read_metric(text, "oku_progress_total"),
        commits=_read_metric(text, "oku_commit_seconds_count"),
        commit_s=_read_metric(text, "oku_commit_seconds_sum"),
    )


def _read_metric(text: str, name: str) -> float:
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    if match is None:
        raise BenchmarkError(f"the coordinator has no metric {name}")
    return float(match[1])


def _read_reports(ledger: Path, begin: float, end: float) -> list[tuple[str, float]]:
    """Leases and when the transaction of their report began."""
    sql = "SELECT id, closed_at FROM leases WHERE state = 'reported' AND closed_at BETWEEN ? AND ?"
    return _select(ledger, sql, begin, end)


def _read_cuts(ledger: Path, begin: float, end: float) -> list[tuple[str, float]]:
    return _select(
        ledger, "SELECT id, cut_at FROM leases WHERE cut_at BETWEEN ? AND ? ORDER BY cut_at", begin, end
    )


def _select(ledger: Path, sql: str, *values: float) -> list[tuple[str, float]]:
    database = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        return database.execute(sql, values).fetchall()
    finally:
        database.close()


def _build_delay(seconds: list[float]) -> Delay:
    if len(seconds) < 2:
        raise BenchmarkError("too few reports came to measure their delay")
    return Delay(
        p50_ms=round(1000 * median(seconds), 1), p99_ms=round(1000 * quantiles(seconds, n=100)[98], 1)
    )
