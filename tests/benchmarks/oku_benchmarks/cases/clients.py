"""The posts' clients beside Oku: time and memory for ten to a million requests at a server without delay.

A client is left out where the smaller sizes say that it would take too long or too much memory; that it
would, and how much, is a result as well.
"""

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.machine import fetch_available_mb
from oku_benchmarks.measuring.observer import find_common_peak_mb, find_peak_mb
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.oku_turn import WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.turn import Stage

OKU = "oku"
PEERS = ("requests", "session", "futures-2", "futures-100", "aiohttp-gather", "aiohttp-limited")
CONCURRENCY = 1000
_NEEDED = {
    "requests": "requests", "session": "requests",
    "futures-2": "requests_futures", "futures-100": "requests_futures",
}  # fmt: skip
_LARGEST_MEMORY_SHARE = 0.5


class ClientRun(msgspec.Struct, frozen=True, kw_only=True):
    """One client, one size; `left_out` says why there are no figures, which then are estimates or 0."""

    client: str
    requests: int
    took_s: float = 0.0
    """The whole process, for Oku the whole command with its stack."""
    active_s: float = 0.0
    """From the first request to the last answer."""
    peak_mb: float = 0.0
    """Of the process, for Oku of the worker."""
    start_s: float | None = None
    """For Oku, from the start of the command to its first request at the target."""
    stack_peak_mb: float | None = None
    """Of all processes of Oku together; None for the others."""
    left_out: str = ""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs, client by client."""

    concurrency: int
    runs: list[ClientRun]


def measure(plan: Plan, folder: Path) -> Results:
    """Each client with rising numbers of requests."""
    runs: list[ClientRun] = []
    with DelayServer(folder) as target:
        stage = Stage(target, folder, timeout_s=3 * plan.client_limit_s)
        for client in PEERS:
            runs += _measure_client(client, plan, partial(_play_peer, stage, client))
        runs += _measure_client(OKU, plan, partial(_play_oku, stage))
    return Results(concurrency=CONCURRENCY, runs=runs)


def _measure_client(client: str, plan: Plan, play: Callable[[int], ClientRun]) -> list[ClientRun]:
    runs: list[ClientRun] = []
    for requests in plan.client_sizes:
        left_out = find_reason(client, runs, requests, plan.client_limit_s)
        run = ClientRun(client=client, requests=requests, left_out=left_out) if left_out else play(requests)
        runs.append(run)
        shown = left_out or f"{run.took_s:.2f} s ({run.active_s:.2f} s active), {run.peak_mb:.0f} MB"
        log(f"  {client}, {requests:,} requests: {shown}")
    return runs


def find_reason(client: str, smaller: Sequence[ClientRun], requests: int, limit_s: float) -> str:
    """Why a client should not try so many requests; empty when it should.

    Time and memory are taken to grow as they did between the two sizes before.
    """
    if (package := _NEEDED.get(client)) and importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    measured = [run for run in smaller if not run.left_out]
    if len(measured) < 2:
        return ""
    before, last = measured[-2:]
    factor = (requests - last.requests) / (last.requests - before.requests)
    expected_s = last.active_s + factor * max(0.0, last.active_s - before.active_s)
    if expected_s > limit_s:
        return f"about {expected_s / 60:.0f} min" if expected_s > 90 else f"about {expected_s:.0f} s"
    expected_mb = last.peak_mb + factor * max(0.0, last.peak_mb - before.peak_mb)
    if client != OKU and expected_mb > _LARGEST_MEMORY_SHARE * fetch_available_mb():
        return f"about {expected_mb / 1000:.0f} GB"
    return ""


def _play_peer(stage: Stage, client: str, requests: int) -> ClientRun:
    turn = stage.play_script("client", "posts_clients.py", client, requests)
    if turn.account["ok"] != requests:
        raise BenchmarkError(f"{client}: {turn.account['ok']} of {requests} requests are ok")
    return ClientRun(
        client=client,
        requests=requests,
        took_s=round(turn.took_s, 2),
        active_s=round(turn.account["active_s"], 3),
        peak_mb=round(turn.account["peak_mb"], 1),
    )


def _play_oku(stage: Stage, requests: int) -> ClientRun:
    with open_data_dir(stage.folder) as data_dir:
        played = play_oku(stage, data_dir, Load(requests=requests, concurrency=CONCURRENCY))
    samples = played.turn.samples
    return ClientRun(
        client=OKU,
        requests=requests,
        took_s=round(played.turn.took_s, 2),
        active_s=round(played.summary.active_s, 3),
        peak_mb=find_peak_mb(samples, WORKER),
        start_s=round(next(sample.at for sample in samples if sample.sent) - samples[0].at, 2),
        stack_peak_mb=find_common_peak_mb(samples),
    )
