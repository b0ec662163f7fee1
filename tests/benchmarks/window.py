"""The case of the posts: a server that answers after 0, 1, 2 or 3 s, and 1000 requests in flight.

A client can do no more than concurrency / mean delay, 666.7 requests/s for each worker. How much of that is
reached once the window is full is counted at the server: what it receives is what a client sends. The same
run of the loop written by hand, which knows no leases, shows what of the ups and downs comes from leases.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import msgspec

from oku_cli.data_dir import DataDir
from oku_core.delay import parse_delay

from .error import BenchmarkError
from .observer import Sample
from .oku_turn import open_data_dir, play_oku
from .plan import Plan
from .progress import log
from .target import Target
from .tick_follower import TickFollower
from .turn import Stage

OKU, BARE_LOOP = "oku", "bare loop"
DELAY = "0..3s"
CONCURRENCY = 1000
MARGIN_S = 5
"""Ramp-up and drain, which do not count."""
STEP_S = 2.0
_SECOND_S = 1.0


class WindowRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run, between its margins."""

    client: str
    workers: int
    requests: int
    leases: int
    """Of the whole run; 0 for the loop."""
    window_s: float
    ceiling_rps: float
    """Concurrency of all workers / mean delay."""
    rate_rps: float
    smallest_rps: float
    """In any 2 s."""
    in_flight: list[int]
    """Over all workers, as they say once a second; empty for the loop."""
    rates_rps: list[float]
    """Of each second."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs."""

    runs: list[WindowRun]


def measure(plan: Plan, folder: Path) -> Results:
    """The loop, then Oku with each number of workers."""
    with Target(folder, DELAY) as target:
        stage = Stage(target, folder)
        runs = [_measure_loop(stage, plan.window_requests)]
        runs += [_measure_oku(stage, workers, plan.window_requests) for workers in plan.window_workers]
    return Results(runs=runs)


def _measure_loop(stage: Stage, requests: int) -> WindowRun:
    turn = stage.play_script("client", "bare_loop.py", requests, CONCURRENCY)
    return _build_run(BARE_LOOP, 1, turn.samples, requests)


def _measure_oku(stage: Stage, workers: int, requests_of_each: int) -> WindowRun:
    requests, concurrency = workers * requests_of_each, workers * CONCURRENCY
    with open_data_dir(stage) as data_dir, TickFollower(data_dir) as follower:
        played = play_oku(stage, data_dir, requests=requests, concurrency=CONCURRENCY, workers=workers)
        leases = _count_leases(data_dir)
    run = _build_run(OKU, workers, played.turn.samples, requests)
    busy = [tick.in_flight for tick in follower.ticks if tick.pending + tick.leased > concurrency]
    return msgspec.structs.replace(run, leases=leases, in_flight=busy[MARGIN_S:-MARGIN_S])


def _build_run(client: str, workers: int, samples: Sequence[Sample], requests: int) -> WindowRun:
    kept = cut_margins(samples, requests)
    times, counts = [sample.at for sample in kept], [sample.sent for sample in kept]
    run = WindowRun(
        client=client,
        workers=workers,
        requests=requests,
        leases=0,
        window_s=round(times[-1] - times[0], 2),
        ceiling_rps=round(workers * CONCURRENCY / parse_delay(DELAY).mean_s, 1),
        rate_rps=round((counts[-1] - counts[0]) / (times[-1] - times[0]), 1),
        smallest_rps=round(min(find_rates(times, counts, STEP_S)), 1),
        in_flight=[],
        rates_rps=[round(rate, 1) for rate in find_rates(times, counts, _SECOND_S, apart=True)],
    )
    log(
        f"  {client}, {workers} workers: {run.rate_rps:,.1f}/s of {run.ceiling_rps:,.1f},"
        f" smallest {run.smallest_rps:,.0f}/s"
    )
    return run


def cut_margins(samples: Sequence[Sample], requests: int) -> list[Sample]:
    """Without what is near the first and the last request."""
    first = next(sample.at for sample in samples if sample.sent > 0)
    last = next(sample.at for sample in samples if sample.sent >= requests)
    kept = [sample for sample in samples if first + MARGIN_S <= sample.at <= last - MARGIN_S]
    if len(kept) < 2 or kept[-1].at - kept[0].at < 2 * STEP_S:
        raise BenchmarkError("the run is too short for a full window")
    return kept


def find_rates(
    times: Sequence[float], counts: Sequence[int], length_s: float, *, apart: bool = False
) -> list[float]:
    """The rate in windows of a length: one from every look on, or, `apart`, one after the other.

    Args:
        times: of the looks, rising.
        counts: how many requests there were until each.
        length_s: of a window.
        apart: whether each window begins where the one before ends.
    """
    rates, start = [], 0
    while (end := bisect_left(times, times[start] + length_s)) < len(times):
        rates.append((counts[end] - counts[start]) / (times[end] - times[start]))
        start = end if apart else start + 1
    return rates


def _count_leases(data_dir: DataDir) -> int:
    database = sqlite3.connect(data_dir.ledger)
    try:
        return int(database.execute("SELECT count(*) FROM leases").fetchone()[0])
    finally:
        database.close()
