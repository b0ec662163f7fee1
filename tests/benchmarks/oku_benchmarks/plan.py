"""How much is measured: the full plan for docs/benchmarks.md, the quick one to see that everything works."""

from collections.abc import Mapping
from dataclasses import dataclass

FREEZE = "freeze"
RATE_PARTS: Mapping[str, int] = {"1000/s": 1_000, "20000/s": 20_000, FREEZE: 0}
"""The parts of the benchmark `rates` that can be asked for, and the rate of each contest."""


@dataclass(frozen=True, kw_only=True)
class Freeze:
    """A target that stops answering for a while.

    Args:
        rate: requests per second.
        run_s: for how long.
        at_s: when it freezes.
        for_s: how long it is frozen.
    """

    rate: int
    run_s: int
    at_s: float
    for_s: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Numbers of requests are for each run of a contestant.

    Args:
        quick: whether this is the quick plan.
        rounds: how often contestants take turns.
        concurrencies: connections of the contest.
        peer_turn_s: how long a contestant's turn is.
        connections: how many a worker has in flight, to see what one costs.
        http2_streams: how many a worker has in flight, to see what one costs.
        wide_workers: of the run with very many requests in flight.
        wide_concurrency: of each of them.
        wide_requests: of that run.
        window_workers: for each run of the posts' own case, how many workers.
        window_requests: of each of these workers.
        window_even_requests: the same for the case of evenly spread delays.
        memory_requests: when the worker's memory is looked at; the last is the length of the run.
        ledger_requests: of the run with simulated workers.
        ledger_s: into how many seconds that run is compressed.
        scaling_steps: numbers of simulated workers, seconds of a lease, seconds that are looked at.
        trillion_requests: of the largest ledger.
        trillion_leases: into how many leases it is cut.
        trillion_s: into how many seconds that run is compressed.
        days_runs: completed runs of a ledger of many days.
        days_leases: of the one run of it that has very many.
        days_samples: seconds that are kept of that run.
        hundred_million: requests of the benchmarks that are named so.
        client_sizes: how many requests each of the posts' clients makes.
        client_limit_s: a client that would take longer is left out.
        rates: that are kept, in requests per second, and for how many seconds.
        rate_rounds: how often contestants take turns at each of them.
        freeze: of the target, under a rate.
        abuse_s: how long each part is attacked.
        user_code_turn_s: how long a turn with user code is.
        user_code_iterations: of the run of user code whose processes are killed.
        part_sizes: runs of many parts: how many targets and stages, seconds of a stage, requests per second.
        lease_cases: the cases of leases that are played; all short ones if it is empty.
        rate_parts: the parts of `rates` that are measured; all if it is empty.
        baseline: a checkout that plays each of them first; none if it is empty.
    """

    quick: bool
    rounds: int
    concurrencies: tuple[int, ...] = (100, 1000)
    peer_turn_s: int
    connections: tuple[int, ...]
    http2_streams: int
    wide_workers: int
    wide_concurrency: int
    wide_requests: int
    window_workers: tuple[int, ...]
    window_requests: int
    window_even_requests: int
    memory_requests: tuple[int, int]
    ledger_requests: int
    ledger_s: float
    scaling_steps: tuple[tuple[int, float, float], ...]
    trillion_requests: int
    trillion_leases: int
    trillion_s: float
    days_runs: int
    days_leases: int
    days_samples: int
    hundred_million: int
    client_sizes: tuple[int, ...]
    client_limit_s: float
    rates: tuple[tuple[int, int], ...]
    rate_rounds: int
    freeze: Freeze
    abuse_s: float
    user_code_turn_s: int
    user_code_iterations: int
    part_sizes: tuple[tuple[int, int, float, int], ...]
    lease_cases: tuple[str, ...] = ()
    rate_parts: tuple[str, ...] = ()
    baseline: str = ""


FULL = Plan(
    quick=False,
    rounds=5,
    peer_turn_s=4,
    connections=(1_000, 5_000, 15_000),
    http2_streams=10_000,
    wide_workers=4,
    wide_concurrency=15_000,
    wide_requests=2_000_000,
    window_workers=(1, 2),
    window_requests=50_000,
    window_even_requests=30_000,
    memory_requests=(100_000, 1_000_000),
    ledger_requests=100_000_000,
    ledger_s=75,
    scaling_steps=((10, 10, 20), (100, 10, 20), (1_000, 10, 30), (10_000, 100, 170)),
    trillion_requests=10**12,
    trillion_leases=10_000,
    trillion_s=60,
    days_runs=2_000,
    days_leases=2_000_000,
    days_samples=3_600,
    hundred_million=100_000_000,
    client_sizes=(10, 100, 10_000, 1_000_000),
    client_limit_s=180,
    rates=((1_000, 6), (20_000, 6)),
    rate_rounds=2,
    freeze=Freeze(rate=1_000, run_s=15, at_s=11.5, for_s=2.0),
    abuse_s=60,
    user_code_turn_s=6,
    user_code_iterations=200_000,
    part_sizes=((1, 1, 30.0, 2_000), (30, 20, 2.0, 1_000), (100, 100, 1.0, 1_000)),
)
QUICK = Plan(
    quick=True,
    rounds=1,
    concurrencies=(100,),
    peer_turn_s=2,
    connections=(1_000, 3_000),
    http2_streams=2_000,
    wide_workers=2,
    wide_concurrency=2_000,
    wide_requests=60_000,
    window_workers=(1,),
    window_requests=13_000,
    window_even_requests=13_000,
    memory_requests=(20_000, 60_000),
    ledger_requests=10_000_000,
    ledger_s=10,
    scaling_steps=((10, 10, 5), (100, 10, 5)),
    trillion_requests=10**12,
    trillion_leases=1_000,
    trillion_s=10,
    days_runs=100,
    days_leases=50_000,
    days_samples=200,
    hundred_million=1_000_000,
    client_sizes=(10, 100, 1_000),
    client_limit_s=20,
    rates=((1_000, 5), (20_000, 4)),
    rate_rounds=1,
    freeze=Freeze(rate=1_000, run_s=14, at_s=11.0, for_s=2.0),
    abuse_s=6,
    user_code_turn_s=3,
    user_code_iterations=60_000,
    part_sizes=((20, 10, 1.0, 500),),
)
