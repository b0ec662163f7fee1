"""Oku beside the loop written by hand and Locust."""

from collections.abc import Sequence

from ..figures import Spread, build_ratios, build_spread
from ..throughput import BARE_LOOP, LOCUST, OKU, Results, Round
from .markdown import Goal, Section, build_table

_LOOP_GOAL = 0.9
_LOCUST_GOAL = 1.5


def build_section(results: Results) -> Section:
    """Everything of the benchmark `throughput`."""
    concurrencies = sorted({entry.concurrency for entry in results.rounds})
    names = [name for name in (OKU, BARE_LOOP, LOCUST) if name not in results.missing]
    rounds = max(entry.number for entry in results.rounds)
    requests = results.rounds[0].requests
    lines = [
        "How much does Oku's machinery (leases, histogram, outcomes, progress once a second) cost beside a loop of",
        "forty lines that only sends requests, and how does it compare with the fastest user of Locust?",
        f"One worker of a real `oku run`, `bare_loop.py` and a `FastHttpUser` without waiting take turns, {rounds}",
        f"rounds, {requests:,} requests each, at one process of `oku server` that answers at once.",
        "",
        "The figures are medians over the rounds, with the smallest and the largest. They are those between 20 %",
        "and 90 % of the requests: starting up, opening connections and winding down are in none of them.",
        "Processor time is that of the client's process, all threads. For Oku that is the worker; broker and",
        "coordinator run beside it on the same cores and slow its rate, not its requests per second of processor.",
        "",
        *build_table(
            ["client", "in flight", "requests per CPU second", "requests/s", "share of a core"],
            [
                _build_row(_pick(results, name, concurrency))
                for concurrency in concurrencies
                for name in names
            ],
        ),
        "",
        "The whole life of a process costs more: until it ended, the median worker had used"
        f" {_measure_whole(results, OKU):.1f} s of processor, the loop {_measure_whole(results, BARE_LOOP):.1f} s.",
        "The difference is mostly what a worker imports.",
    ]
    if results.missing:
        lines += ["", f"Not installed, and so not measured: {', '.join(results.missing)}."]
    goals = [_build_loop_goal(results, concurrency) for concurrency in concurrencies]
    if LOCUST in names:
        goals += [_build_locust_goal(results, concurrency) for concurrency in concurrencies]
    return Section(
        title="One worker, a loop by hand, and Locust",
        lines=lines,
        goals=goals,
        packages=("aiohttp", "uvloop", "yarl", "celery", "locust", "gevent", "geventhttpclient"),
    )


def _pick(results: Results, name: str, concurrency: int) -> list[Round]:
    return [
        entry
        for entry in results.rounds
        if entry.contestant == name and entry.concurrency == concurrency
    ]


def _build_row(rounds: Sequence[Round]) -> list[str]:
    first = rounds[0]
    return [
        first.contestant,
        f"{first.concurrency:,}",
        build_spread(entry.requests_per_cpu_s for entry in rounds).format(),
        build_spread(entry.rate_rps for entry in rounds).format(),
        build_spread(entry.cpu_share for entry in rounds).format(".2f"),
    ]


def _build_loop_goal(results: Results, concurrency: int) -> Goal:
    ratio = build_ratios(
        (entry.requests_per_cpu_s for entry in _pick(results, OKU, concurrency)),
        (entry.requests_per_cpu_s for entry in _pick(results, BARE_LOOP, concurrency)),
    )
    return Goal(
        text=f"requests per CPU second at {concurrency:,} in flight: at least {_LOOP_GOAL:g} of the loop by hand",
        result=ratio.format(".2f"),
        is_met=ratio.median >= _LOOP_GOAL,
    )


def _build_locust_goal(results: Results, concurrency: int) -> Goal:
    ratio: Spread = build_ratios(
        (entry.rate_rps for entry in _pick(results, OKU, concurrency)),
        (entry.rate_rps for entry in _pick(results, LOCUST, concurrency)),
    )
    return Goal(
        text=f"requests/s at {concurrency:,} in flight: at least {_LOCUST_GOAL:g} times Locust's",
        result=ratio.format(".2f"),
        is_met=ratio.median >= _LOCUST_GOAL,
    )


def _measure_whole(results: Results, name: str) -> float:
    return build_spread(entry.whole_cpu_s for entry in results.rounds if entry.contestant == name).median
