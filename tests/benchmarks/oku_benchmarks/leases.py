"""Leases: is the window of every worker full, does a run survive deaths, and is everything accounted once?"""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import median

from oku_benchmarks.contest import OkuOptions, OkuRun, run_oku
from oku_benchmarks.counting_server import Behaviour, Sample
from oku_benchmarks.long_run import LongRun, kill_tree, measure_long_run
from oku_benchmarks.processes import Look, find_tree
from oku_benchmarks.report import BenchmarkError, Goal, Plan, Report, Table, log
from oku_benchmarks.rivals import write_script
from oku_benchmarks.targets import CountingTarget, find_duration_s, find_full_seconds
from oku_core.spec.values.delay import parse_delay

_WORKERS = ("worker-1", "worker-2")
_FULL = 0.97
Act = Callable[[Look, Mapping[str, int]], None]


def _play(
    plan: Plan, behaviour: Behaviour, flags: Sequence[str], act: Act | None = None, script: str = ""
) -> tuple[OkuRun, list[Sample], Goal]:
    """A run at a target that tells indices apart; whether each request is accounted once."""
    folder, requests = plan.make_folder(f"{time.monotonic_ns()}"), behaviour.indices
    with CountingTarget(folder / "target", behaviour) as target:
        where = [write_script(folder, script), "--host", target.base] if script else [target.url]
        options = OkuOptions(count=target.read_served, timeout_s=900, act=act)
        run = run_oku(folder, [*where, "-n", str(requests), *flags], options)
        samples = target.read()
    last, most = samples[-1], run.summary.resent_at_most
    twice, accounted = last.received - last.distinct, run.summary.accounted
    goal = Goal(
        f"{requests:,} requests, each accounted once; sent twice at most `resent_at_most`",
        f"{accounted:,} accounted; {twice:,} sent twice, `resent_at_most` is {most:,}",
        accounted == requests == last.distinct and twice <= most,
        is_exact=True,
    )
    return run, samples, goal


def _measure_full(plan: Plan, behaviour: Behaviour, timeout_s: float, *flags: str) -> list[Goal]:
    """100 in flight in one worker, although answers never come, or leases are small."""
    rare = behaviour.rare_share
    mean_s = parse_delay(behaviour.delay).mean_s * (1 - rare) + timeout_s * rare
    allowed_s = 1.1 * (behaviour.indices * mean_s / 100 + timeout_s / 2)
    load = ("--workers", "1", "--concurrency", "100", "--timeout", f"{timeout_s}s")
    _, samples, goal = _play(plan, behaviour, (*load, *flags))
    (full, seconds), took_s = find_full_seconds(samples, behaviour.indices, 100), find_duration_s(samples)
    result = f"full in {full} of {seconds} s; {took_s:.1f} s"
    is_met = full >= _FULL * seconds and took_s <= allowed_s
    text = f"the window is full in 97 % of all seconds; at most {allowed_s:.0f} s"
    return [goal, Goal(text, result, is_met)]


def _measure_hanging(plan: Plan) -> list[Goal]:
    behaviour = Behaviour(indices=plan.choose(30_000, 3_000), rare_share=0.01)
    return _measure_full(plan, behaviour, plan.choose(10.0, 3.0))


def _measure_small_leases(plan: Plan) -> list[Goal]:
    behaviour = Behaviour(indices=plan.choose(6_000, 2_000), delay="100ms")
    return _measure_full(plan, behaviour, 10.0, "--range-size", "10")


def _measure_few_requests(plan: Plan) -> list[Goal]:
    workers = plan.choose(8, 3)
    load = ("--workers", str(workers), "--concurrency", str(500 * workers))
    run, _, goal = _play(plan, Behaviour(indices=250 * workers, delay="500ms"), load)
    parts = [worker.requests for worker in run.summary.workers if worker.requests]
    result = f"{len(parts)} of {workers}, with {min(parts)} to {max(parts)} requests"
    text = f"{250 * workers} requests with 500 in flight in each worker: all {workers} workers take part"
    return [goal, Goal(text, result, len(parts) == workers)]


class _Killer:
    """Kills evenly over a run: a worker, or with `hosts` every other time its host of user code."""

    def __init__(self, kills: int, requests: int, *, hosts: bool) -> None:
        self.left = [requests * (number + 1) // (kills + 2) for number in range(kills)]
        self._chance, self._hosts, self._at = random.Random(kills), hosts, 0.0

    def act(self, look: Look, pids: Mapping[str, int]) -> None:
        """Kill if it is time."""
        victim = self._chance.choice(_WORKERS)
        if not self.left or look.sent < self.left[0] or victim not in pids:
            return
        self._at = self._at or look.at + self._chance.uniform(0, 0.5)
        if look.at >= self._at:
            self.left.pop(0)
            self._at = 0.0
            tree = find_tree(pids[victim])
            # Below the zygote is the worker, and below that the host of user code.
            kill_tree(tree[2:] if self._hosts and len(self.left) % 2 and len(tree) > 2 else tree)


def _measure_deaths(plan: Plan, kills: int, script: str = "") -> tuple[float, Goal]:
    behaviour = Behaviour(indices=plan.choose(100_000, 6_000), delay="5ms..50ms")
    killer = _Killer(kills, behaviour.indices, hosts=bool(script))
    load = ("--workers", "2", "--concurrency", "100")
    run, samples, goal = _play(plan, behaviour, load, killer.act, script)
    if killer.left:
        raise BenchmarkError(f"{len(killer.left)} of {kills} kills came too late")
    return run.summary.resent_at_most / max(1, samples[-1].received - samples[-1].distinct), goal


def _measure_kills(plan: Plan) -> list[Goal]:
    deaths = [_measure_deaths(plan, kills) for kills in plan.choose((10, 25, 60), (1,))]
    ratio = median(ratio for ratio, _ in deaths)
    text = "`resent_at_most` is at most 4 times what was sent twice"
    return [*(goal for _, goal in deaths), Goal(text, f"median {ratio:.1f}", ratio <= 4)]


def _measure_user_code_kills(plan: Plan) -> list[Goal]:
    return [_measure_deaths(plan, plan.choose(10, 2), "counted_scenario.py")[1]]


def _measure_coordinator_away(plan: Plan) -> list[Goal]:
    """The coordinator stands still for a while; the load goes on."""
    behaviour, away_s = Behaviour(indices=plan.choose(60_000, 12_000), delay="100ms"), plan.choose(8.0, 2.0)
    stood: list[Look] = []

    def act(look: Look, pids: Mapping[str, int]) -> None:
        if not stood and look.sent > behaviour.indices // 3 and "coordinator" in pids:
            stood.append(look)
            os.kill(pids["coordinator"], signal.SIGSTOP)
        elif len(stood) == 1 and look.at > stood[0].at + away_s:
            stood.append(look)
            with suppress(ProcessLookupError):
                os.kill(pids["coordinator"], signal.SIGCONT)

    _, _, goal = _play(plan, behaviour, ("--workers", "2", "--concurrency", "200"), act)
    if len(stood) < 2:
        raise BenchmarkError("the run ended before the coordinator went on")
    rate = (stood[1].sent - stood[0].sent) / (stood[1].at - stood[0].at)
    text = f"the coordinator stands still for {away_s:g} s: the load is at least 90 % of 2,000/s"
    return [goal, Goal(text, f"{rate:,.0f}/s", rate >= 1_800)]


CASES: Mapping[str, Callable[[Plan], list[Goal]]] = {
    "hanging": _measure_hanging,
    "small-leases": _measure_small_leases,
    "few-requests": _measure_few_requests,
    "kills": _measure_kills,
    "user-code-kills": _measure_user_code_kills,
    "coordinator-away": _measure_coordinator_away,
}


def measure_cases(plan: Plan) -> Report:
    """Cases: answers that never come, small leases, dead workers, a coordinator that stands still."""
    rows, goals = [], []
    for name in plan.pick(CASES):
        for goal in CASES[name](plan):
            log(f"  {name}: {goal.result}")
            rows.append((name, goal.text, goal.result, "yes" if goal.is_met else "**no**"))
            goals.append(goal)
    return Report(tables=[Table(("case", "goal", "result", "met"), rows)], judged=goals)


def measure_window(plan: Plan) -> Report:
    """The posts' own case, with aiohttp: answers after 0 to 3 s, 1,000 in flight; what share is sent?"""
    rows, goals = [], []
    full, small = (("0..3s", 1), ("0..3s", 2), ("0ms..3000ms", 1)), (("0ms..600ms", 1),)
    for delay, workers in plan.choose(full, small):
        concurrency, requests = workers * plan.choose(1_000, 200), workers * plan.choose(40_000, 6_000)
        load = ("--workers", str(workers), "--concurrency", str(concurrency), "--engine", "aiohttp")
        run, samples, goal = _play(plan, Behaviour(indices=requests, delay=delay), load)
        margin_s = plan.choose(5.0, 1.0)
        begin = next(sample.at for sample in samples if sample.received) + margin_s
        end = next(sample.at for sample in samples if sample.distinct == requests) - margin_s
        kept = [sample for sample in samples if begin <= sample.at <= end]
        if len(kept) < 30:
            raise BenchmarkError("the run is too short for a full window")
        possible = concurrency / parse_delay(delay).mean_s
        rate = _measure_rate(kept[0], kept[-1])
        lowest = min(_measure_rate(*pair) for pair in pairwise(kept[::20]))
        fewest = min(sample.working for sample in kept)
        rows.append((
            f"`{delay}`", str(workers), str(run.leases), f"{possible:,.0f}/s", f"{rate:,.0f}/s",
            f"{rate / possible:.1%}", f"{lowest:,.0f}/s", f"{fewest:,} of {concurrency:,}",
        ))  # fmt: skip
        log(f"  {', '.join(rows[-1])}")
        text = f"`--delay {delay}`, {workers} workers: at least 97 % of concurrency / mean delay"
        is_met = rate >= _FULL * possible
        goals += [goal, Goal(text, f"{rate / possible:.1%}", is_met)]
    head = ("delay", "workers", "leases", "possible", "requests/s", "share", "lowest 2 s", "fewest in flight")
    return Report(tables=[Table(head, rows)], goals=goals)


def _measure_rate(begin: Sample, end: Sample) -> float:
    return (end.received - begin.received) / (end.at - begin.at)


def measure_no_delay(plan: Plan) -> Report:
    """A hundred million requests as fast as one worker and its delay server go."""
    requests = plan.requests or plan.choose(100_000_000, 20_000)
    load = LongRun(requests=requests, concurrency=100, limit_s=1_800, look_s=plan.choose(2.0, 0.05))
    return measure_long_run(plan, load)


def measure_posts(plan: Plan) -> Report:
    """A hundred million requests, answers after 0 to 3 s; a worker and the coordinator are killed."""
    concurrency, delay, look_s = plan.choose((50_000, "0..3s", 2.0), (800, "0ms..200ms", 0.05))
    load = LongRun(
        requests=plan.requests or plan.choose(100_000_000, 20_000),
        workers=4,
        concurrency=concurrency,
        delay=delay,
        limit_s=3_600,
        kills=True,
        look_s=look_s,
    )
    return measure_long_run(plan, load)
