"""How much is measured: the full plan for docs/benchmarks.md, the quick one to see that everything works."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Numbers of requests are for each run of a contestant.

    Args:
        quick: whether this is the quick plan.
        rounds: how often contestants take turns.
        concurrencies: of the contests.
        throughput_requests: of a contestant's turn.
        window_workers: for each run of the posts' own case, how many workers.
        window_requests: of each of these workers.
        window_even_requests: the same for the case of evenly spread delays.
        memory_requests: when the worker's memory is looked at; the last is the length of the run.
        ledger_requests: of the run with simulated workers.
        ledger_s: into how many seconds that run is compressed.
        client_sizes: how many requests each of the posts' clients makes.
        client_limit_s: a client that would take longer is left out.
    """

    quick: bool
    rounds: int
    concurrencies: tuple[int, ...] = (100, 1000)
    throughput_requests: int
    window_workers: tuple[int, ...]
    window_requests: int
    window_even_requests: int
    memory_requests: tuple[int, int]
    ledger_requests: int
    ledger_s: float
    client_sizes: tuple[int, ...]
    client_limit_s: float


FULL = Plan(
    quick=False,
    rounds=5,
    throughput_requests=60_000,
    window_workers=(1, 2),
    window_requests=50_000,
    window_even_requests=30_000,
    memory_requests=(100_000, 1_000_000),
    ledger_requests=100_000_000,
    ledger_s=75,
    client_sizes=(10, 100, 10_000, 1_000_000),
    client_limit_s=180,
)
QUICK = Plan(
    quick=True,
    rounds=2,
    throughput_requests=15_000,
    window_workers=(1,),
    window_requests=13_000,
    window_even_requests=13_000,
    memory_requests=(20_000, 60_000),
    ledger_requests=10_000_000,
    ledger_s=10,
    client_sizes=(10, 100, 1_000),
    client_limit_s=20,
)
