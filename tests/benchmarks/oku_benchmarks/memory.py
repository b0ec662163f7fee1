"""Memory: of a long run, of a connection and a stream in flight, of wide runs, and under attack."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from urllib.parse import urlsplit

from tests.kit.faults.abuse import abuse, run_site
from tests.kit.runs.local_run import wait_until

from oku_benchmarks.contest import WORKER, OkuOptions, run_oku
from oku_benchmarks.long_run import LongRun, measure_long_run
from oku_benchmarks.nginx import BEHIND, Nginx
from oku_benchmarks.processes import Count
from oku_benchmarks.report import BenchmarkError, Goal, Plan, Report, Table, build_spread, log
from oku_benchmarks.targets import DelayServer

_BASE = 100


def measure_run(plan: Plan) -> Report:
    """A million requests at full speed, 1,000 in flight in one worker: memory of every process."""
    requests, in_flight = plan.requests or plan.choose(1_000_000, 8_000), plan.choose(1_000, 100)
    load = LongRun(requests=requests, concurrency=in_flight, engine="aiohttp", most_mb=130.0)
    return measure_long_run(plan, load)


def measure_wide(plan: Plan) -> Report:
    """60,000 requests in flight in four workers, with answers after 0 to 3 s."""
    requests = plan.requests or plan.choose(2_000_000, 20_000)
    workers, concurrency, delay = plan.choose((4, 60_000, "0..3s"), (2, 1_000, "0ms..600ms"))
    load = LongRun(requests=requests, workers=workers, concurrency=concurrency, delay=delay)
    return measure_long_run(plan, load)


def measure_connections(plan: Plan) -> Report:
    """What a request in flight costs a worker: more and more of them wait for answers."""
    delay = plan.choose("3000ms..4000ms", "1500ms..2000ms")
    with DelayServer(plan.folder / "server", delay) as server:

        def play(in_flight: int) -> float:
            flags = [server.url, "--engine", "httptools", "--concurrency", str(in_flight)]
            return _hold(plan, flags, in_flight, server.read_served)

        return _measure_held(plan, plan.choose((1_000, 5_000, 15_000), (1_000,)), play, "requests", 4.0)


def measure_streams(plan: Plan) -> Report:
    """What a stream of HTTP/2 in flight costs a worker, 100 of them on each connection."""
    delay = plan.choose("5000ms..6000ms", "1500ms..2000ms")
    with ExitStack() as exits:
        server = exits.enter_context(DelayServer(plan.folder / "server", delay))
        nginx = exits.enter_context(Nginx(plan.folder / "nginx", behind=urlsplit(server.url).netloc))

        def play(in_flight: int) -> float:
            flags = ["--http2-prior-knowledge", "--streams", "100", "--concurrency", str(in_flight)]
            return _hold(plan, [nginx.build_url(BEHIND), *flags], in_flight, server.read_served)

        return _measure_held(plan, plan.choose((10_000,), (1_000,)), play, "streams", 2.0)


def _hold(plan: Plan, flags: Sequence[str], in_flight: int, count: Count) -> float:
    """Memory of the worker in the median of the time in which all are in flight."""
    flags = [*flags, "--requests", str(2 * in_flight), "--workers", "1", "--timeout", "60s"]
    looks = run_oku(plan.folder, flags, OkuOptions(count=count)).looks
    held = [look.vitals[WORKER].memory_mb for look in looks if in_flight <= look.sent < 2 * in_flight]
    if not held:
        raise BenchmarkError(f"{in_flight:,} were never in flight")
    return median(held)


def _measure_held(
    plan: Plan, sizes: Sequence[int], play: Callable[[int], float], what: str, most_kb: float
) -> Report:
    memory: dict[int, list[float]] = {}
    for _ in range(plan.rounds):
        for in_flight in (_BASE, *sizes):
            memory.setdefault(in_flight, []).append(play(in_flight))
            log(f"  {in_flight:,} {what}: {memory[in_flight][-1]:.1f} MB")
    rows = [(f"{_BASE:,}", f"{build_spread(memory[_BASE]).format('.1f')} MB", "")]
    goals = []
    for in_flight in sizes:
        each = build_spread(
            1000 * (mb - base) / (in_flight - _BASE)
            for mb, base in zip(memory[in_flight], memory[_BASE], strict=True)
        )
        rows.append((
            f"{in_flight:,}", f"{build_spread(memory[in_flight]).format('.1f')} MB",
            f"{each.format('.2f')} kB",
        ))  # fmt: skip
        text = f"{in_flight:,} {what} in flight: at most {most_kb:g} kB each"
        goals.append(Goal(text, f"{each.format('.2f')} kB", each.median <= most_kb))
    return Report(tables=[Table((f"{what} in flight", "worker", "each beyond the first"), rows)], goals=goals)


def measure_abuse(plan: Plan) -> Report:
    """Three attackers without a token at the coordinator, then at the delay server, while a run goes on."""
    rows, goals = [], []
    with run_site(plan.folder) as site:
        run = site.api.submit(requests=100_000_000, concurrency=20)  # it outlasts the attacks
        wait_until(lambda: bool(site.api.summary(run)["accounted"]), 60.0, "a lease is accounted")
        for name, attacked in (("coordinator", site.coordinator), ("delay server", site.server)):
            began, before = time.monotonic(), int(site.api.summary(run)["servers"]["served"])
            damage = abuse(attacked, plan.choose(60.0, 3.0))
            served = int(site.api.summary(run)["servers"]["served"]) - before
            rows.append((
                name, f"{1000 * damage.worst_probe_s:,.0f} ms of {damage.probes}",
                f"{damage.memory_mb:+.1f} MB", f"{damage.log_mb:+.3f} MB",
                f"{served / (time.monotonic() - began):,.0f}/s",
            ))  # fmt: skip
            log(f"  {', '.join(rows[-1])}")
            text = f"{name}: the probe within 1 s, less than 10 MB more of memory and log, the run goes on"
            is_met = damage.worst_probe_s < 1 and max(damage.memory_mb, damage.log_mb) < 10 and served > 0
            goals.append(Goal(text, ", ".join(rows[-1][1:]), is_met))
    head = ("attacked", "slowest probe", "memory", "log", "run meanwhile")
    return Report(tables=[Table(head, rows)], goals=goals)
