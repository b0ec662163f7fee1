"""As many requests in flight as a few workers can hold, with the delays of the posts.

`oku run` brings as many delay servers and ports as that takes. Once the window is full, the rate can be no
more than concurrency / mean delay; it is counted at the servers.
"""

import time
from pathlib import Path

import msgspec

from oku_benchmarks.cases.window import POSTS_DELAY, cut_margins, find_rates
from oku_benchmarks.measuring.observer import Window, find_peak_mb
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.oku_turn import HTTPTOOLS, Load
from oku_benchmarks.turns.own_servers import play_own
from oku_core.spec.values.delay import parse_delay
from oku_core.summary.validity import Flag

MARGIN_S = 10
"""After the first request and before the last answer: opening so many connections takes a while."""
_TIMEOUT_S = 600.0


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run; rates and shares are those between its margins."""

    requests: int
    workers: int
    concurrency: int
    delay: str
    servers: int
    """Delay servers, each with a port of its own."""
    window_s: float
    ceiling_rps: float
    """Concurrency of all workers / mean delay."""
    rate_rps: float
    in_flight: list[int]
    """Over all workers, as they say once a second."""
    rates_rps: list[float]
    """Of each second, at the servers."""
    p50_ms: float | None
    p99_ms: float | None
    cpu_shares: dict[str, float]
    """Of one core, for each process."""
    peaks_mb: dict[str, float]
    """For each process."""
    flags: list[Flag]
    """Of the summary."""


def measure(plan: Plan, folder: Path) -> Results:
    """One run."""
    load = Load(
        requests=plan.wide_requests,
        concurrency=plan.wide_concurrency,
        workers=plan.wide_workers,
        engine=HTTPTOOLS,
        delay=POSTS_DELAY,
    )
    run = play_own(folder, load, timeout_s=_TIMEOUT_S)
    summary, samples = run.played.summary, run.played.turn.samples
    # On a machine that is too busy some time out before they are sent.
    kept = cut_margins(samples, min(load.requests, samples[-1].sent), MARGIN_S)
    times, counts = [sample.at for sample in kept], [sample.sent for sample in kept]
    [rate_rps] = find_rates(times, counts, float(int(times[-1] - times[0])), apart=True)
    wall_s = time.time() - time.monotonic()
    window = Window(kept[0], kept[-1])
    names = sorted(kept[0].vitals.keys() & kept[-1].vitals.keys())
    results = Results(
        requests=load.requests,
        workers=load.workers,
        concurrency=load.concurrency,
        delay=load.delay,
        servers=len({name.partition(",")[0] for name in names if name.startswith("server")}),
        window_s=round(window.length_s, 2),
        ceiling_rps=round(load.workers * load.concurrency / parse_delay(load.delay).mean_s, 1),
        rate_rps=round(rate_rps, 1),
        in_flight=[
            round(tick.sample.in_flight)
            for tick in run.ticks
            if tick.sample.in_flight is not None and times[0] <= tick.sample.at - wall_s <= times[-1]
        ],
        rates_rps=[round(rate, 1) for rate in find_rates(times, counts, 1.0, apart=True)],
        p50_ms=summary.latency_ms.p50,
        p99_ms=summary.latency_ms.p99,
        cpu_shares={name: round(window.measure_cpu_s(name) / window.length_s, 3) for name in names},
        peaks_mb={name: find_peak_mb(samples, name) for name in names},
        flags=[validity.flag for validity in summary.validity],
    )
    log(
        f"  {load.workers} x {load.concurrency:,}: {results.rate_rps:,.0f}/s of {results.ceiling_rps:,.0f},"
        f" flags {', '.join(results.flags) or 'none'}"
    )
    return results
