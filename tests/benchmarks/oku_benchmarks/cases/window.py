"""The case of the posts: a server that answers after 0, 1, 2 or 3 s, and 1000 requests in flight.

A client can do no more than concurrency / mean delay, 666.7 requests/s for each worker. How much of that is
reached once the window is full is counted at the server: what it receives is what a client sends.

Delays of whole seconds make requests come in bursts, in which no dip is to be seen. So there is a second
case, with delays spread evenly between 0 and 3 s, and beside Oku the loop written by hand, which knows no
leases: what its rate lacks at its lowest is chance, what Oku's lacks beyond that would be leases.
"""

import sqlite3
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import Observation
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.oku_turn import Load, open_data_dir, play_oku
from oku_benchmarks.turns.tick_follower import TickFollower
from oku_benchmarks.turns.turn import Stage
from oku_cli.backends.data_dir import DataDir
from oku_core.spec.values.delay import parse_delay

OKU, BARE_LOOP = "oku", "bare loop"
POSTS_DELAY = "0..3s"
EVEN_DELAY = "0ms..3000ms"
CONCURRENCY = 1000
MARGIN_S = 5
"""After the first request and before the last answer: ramp-up and drain, which do not count."""
_LONGEST_DELAY_S = 3
STEP_S = 2.0
_SECOND_S = 1.0


class WindowRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run; rates are those between its margins."""

    client: str
    delay: str
    workers: int
    requests: int
    leases: int = 0
    """Of the whole run; the loop has none."""
    window_s: float = 0.0
    ceiling_rps: float = 0.0
    """Concurrency of all workers / mean delay."""
    rate_rps: float = 0.0
    smallest_rps: float = 0.0
    """In any 2 s."""
    in_flight: list[int] = []
    """Over all workers, as they say once a second; the loop does not say."""
    rates_rps: list[float] = []
    """Of each second."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs."""

    runs: list[WindowRun]


def measure(plan: Plan, folder: Path) -> Results:
    """The posts' case with each number of workers, then the even one of both clients."""
    with DelayServer(folder, POSTS_DELAY) as target:
        stage = Stage(target, folder)
        runs = [
            _measure_oku(stage, POSTS_DELAY, workers, plan.window_requests) for workers in plan.window_workers
        ]
    with DelayServer(folder, EVEN_DELAY) as target:
        stage = Stage(target, folder)
        runs.append(_measure_loop(stage, plan.window_even_requests))
        runs.append(_measure_oku(stage, EVEN_DELAY, 1, plan.window_even_requests))
    return Results(runs=runs)


def _measure_loop(stage: Stage, requests: int) -> WindowRun:
    turn = stage.play_script("client", "bare_loop.py", requests, CONCURRENCY)
    run = WindowRun(client=BARE_LOOP, delay=EVEN_DELAY, workers=1, requests=requests)
    return _fill_in(run, turn.samples)


def _measure_oku(stage: Stage, delay: str, workers: int, requests_of_each: int) -> WindowRun:
    requests = workers * requests_of_each
    with open_data_dir(stage.folder) as data_dir, TickFollower(data_dir) as follower:
        played = play_oku(stage, data_dir, Load(requests=requests, concurrency=CONCURRENCY, workers=workers))
        leases = _count_leases(data_dir)
    kept = cut_margins(played.turn.samples, requests)
    wall_s = time.time() - time.monotonic()
    in_flight = [
        round(tick.sample.in_flight)
        for tick in follower.ticks
        if tick.sample.in_flight is not None and kept[0].at <= tick.sample.at - wall_s <= kept[-1].at
    ]
    run = WindowRun(
        client=OKU, delay=delay, workers=workers, requests=requests, leases=leases, in_flight=in_flight
    )
    return _fill_in(run, played.turn.samples)


def _fill_in(run: WindowRun, samples: Sequence[Observation]) -> WindowRun:
    kept = cut_margins(samples, run.requests)
    times, counts = [sample.at for sample in kept], [sample.sent for sample in kept]
    # Whole seconds, and so whole bursts.
    [rate_rps] = find_rates(times, counts, float(int(times[-1] - times[0])), apart=True)
    run = msgspec.structs.replace(
        run,
        window_s=round(times[-1] - times[0], 2),
        ceiling_rps=round(run.workers * CONCURRENCY / parse_delay(run.delay).mean_s, 1),
        rate_rps=round(rate_rps, 1),
        smallest_rps=round(min(find_rates(times, counts, STEP_S)), 1),
        rates_rps=[round(rate, 1) for rate in find_rates(times, counts, _SECOND_S, apart=True)],
    )
    log(
        f"  {run.delay}, {run.client}, workers {run.workers}: {run.rate_rps:,.1f}/s of"
        f" {run.ceiling_rps:,.1f}, smallest {run.smallest_rps:,.0f}/s"
    )
    return run


def cut_margins(
    samples: Sequence[Observation], requests: int, margin_s: float = MARGIN_S
) -> list[Observation]:
    """Without what is near the first request and the last answer."""
    first = next(sample.at for sample in samples if sample.sent > 0)
    last = next(sample.at for sample in samples if sample.sent >= requests) + _LONGEST_DELAY_S
    kept = [sample for sample in samples if first + margin_s <= sample.at <= last - margin_s]
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
