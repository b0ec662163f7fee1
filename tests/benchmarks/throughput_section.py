"""The section of the benchmark `throughput`: Oku beside the loop written by hand and Locust."""

from collections.abc import Sequence

from .figures import build_ratios, build_spread
from .section import Goal, Section, build_table, fill_text
from .throughput import BARE_LOOP, LOCUST, OKU, Results, Round

_LOOP_GOAL = 0.9
_LOCUST_GOAL = 1.5
_TEXT = """\
How much does Oku's machinery (leases, histogram, outcomes, progress once a second) cost beside forty
lines of aiohttp that only send requests, and how does it compare with the fastest user of Locust? One
worker of a real `oku run`, the loop (`tests/benchmarks/contestants/bare_loop.py`) and a `FastHttpUser`
without waiting take turns. The loop has the worker's settings of aiohttp and of the garbage collector; Locust
has its own. There are {rounds} rounds of {requests:,} requests each, at one process of `oku server` that
answers at once.

Figures are medians over the rounds, in brackets the smallest and the largest, all taken between 20 % and
90 % of the requests: starting up, opening connections and winding down are in none of them. Processor
time is that of the client's process with all its threads, for Oku the worker. Broker and coordinator run
beside it on the same cores: they may slow its rate, not its requests per second of processor time.

{table}

What a process costs before its first request is not in these figures: until it ended, the median worker
had used {worker_s:.1f} s of processor time, the loop {loop_s:.1f} s. Most of the difference is what a
worker imports.
{missing}"""


def build_section(results: Results) -> Section:
    """Everything of the benchmark."""
    concurrencies = sorted({entry.concurrency for entry in results.rounds})
    names = [name for name in (OKU, BARE_LOOP, LOCUST) if name not in results.missing]
    missing = (
        f"\nNot installed, and so not measured: {', '.join(results.missing)}.\n" if results.missing else ""
    )
    goals = [_build_loop_goal(results, concurrency) for concurrency in concurrencies]
    if LOCUST in names:
        goals += [_build_locust_goal(results, concurrency) for concurrency in concurrencies]
    rows = [_build_row(_pick(results, name, concurrency)) for concurrency in concurrencies for name in names]
    return Section(
        title="One worker, a loop by hand, and Locust",
        text=fill_text(
            _TEXT,
            rounds=max(entry.number for entry in results.rounds),
            requests=results.rounds[0].requests,
            table=build_table(
                ["client", "in flight", "requests per CPU second", "requests/s", "share of a core"], rows
            ),
            worker_s=_measure_whole_s(results, OKU),
            loop_s=_measure_whole_s(results, BARE_LOOP),
            missing=missing,
        ),
        goals=goals,
        packages=("aiohttp", "uvloop", "yarl", "celery", "locust", "gevent", "geventhttpclient"),
    )


def _pick(results: Results, name: str, concurrency: int) -> list[Round]:
    return [
        entry for entry in results.rounds if entry.contestant == name and entry.concurrency == concurrency
    ]


def _build_row(rounds: Sequence[Round]) -> list[str]:
    return [
        rounds[0].contestant,
        f"{rounds[0].concurrency:,}",
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
        text=f"requests per CPU second, {concurrency:,} in flight: at least {_LOOP_GOAL:g} of the loop's",
        result=ratio.format(".2f"),
        is_met=ratio.median >= _LOOP_GOAL,
    )


def _build_locust_goal(results: Results, concurrency: int) -> Goal:
    ratio = build_ratios(
        (entry.rate_rps for entry in _pick(results, OKU, concurrency)),
        (entry.rate_rps for entry in _pick(results, LOCUST, concurrency)),
    )
    return Goal(
        text=f"requests/s, {concurrency:,} in flight: at least {_LOCUST_GOAL:g} times those of Locust",
        result=ratio.format(".2f"),
        is_met=ratio.median >= _LOCUST_GOAL,
    )


def _measure_whole_s(results: Results, name: str) -> float:
    return build_spread(entry.whole_cpu_s for entry in results.rounds if entry.contestant == name).median
