"""What a connection in flight costs: memory of one worker with more and more requests waiting for an answer.

The target answers after 3 to 4 s, so that all are in flight soon after the start. Looked at is the time
from when as many requests as are to be in flight have reached the target until the last one has: whoever is
answered asks again at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import find_peak_mb
from oku_benchmarks.measuring.spread import Spread, build_spread
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.delay_server import DelayServer
from oku_benchmarks.turns.oku_turn import HTTPTOOLS, WORKER, Load, open_data_dir, play_oku
from oku_benchmarks.turns.turn import Stage

DELAY = "3000ms..4000ms"
BASE = 100
_TURNOVERS = 2
"""How often each of those in flight is followed by another one, the first included."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    number: int
    in_flight: int
    worker_mb: float
    """Resident memory while all are in flight."""
    peak_mb: float
    """Until the end of the run."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs, in the order in which they were made; the base comes first in each round."""

    rounds: list[Round]


def measure(plan: Plan, folder: Path) -> Results:
    """Rounds of runs with rising numbers of connections."""
    with DelayServer(folder, DELAY) as target:
        stage = Stage(target, folder)
        return Results(
            rounds=[
                measure_round(stage, number, Load(concurrency=in_flight, engine=HTTPTOOLS))
                for number in range(1, plan.rounds + 1)
                for in_flight in (BASE, *plan.connections)
            ]
        )


def measure_round(stage: Stage, number: int, load: Load) -> Round:
    """One run of a load whose requests are as many as its concurrency makes, at a target that waits."""
    in_flight, requests = load.concurrency, _TURNOVERS * load.concurrency
    with open_data_dir(stage.folder) as data_dir:
        played = play_oku(stage, data_dir, replace(load, requests=requests))
    if played.summary.outcomes.ok != requests:
        raise BenchmarkError(f"{played.summary.outcomes.ok} of {requests} requests are ok")
    samples = played.turn.samples
    full = [sample.vitals[WORKER].rss_mb for sample in samples if in_flight <= sample.sent < requests]
    if not full:
        raise BenchmarkError(f"there were never {in_flight} requests in flight")
    result = Round(
        number=number,
        in_flight=in_flight,
        worker_mb=round(median(full), 2),
        peak_mb=find_peak_mb(samples, WORKER),
    )
    log(f"  round {number}, {in_flight:,} in flight: {result.worker_mb:.1f} MB")
    return result


def measure_cost_kb(rounds: Sequence[Round], in_flight: int) -> Spread:
    """Memory of each request in flight beyond the base, round by round; kB are 10**3 bytes."""
    base_mb = {entry.number: entry.worker_mb for entry in rounds if entry.in_flight == BASE}
    return build_spread(
        (entry.worker_mb - base_mb[entry.number]) * 1000 / (in_flight - BASE)
        for entry in rounds
        if entry.in_flight == in_flight
    )
