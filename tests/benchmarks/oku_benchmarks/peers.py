"""Peers: one worker of Oku beside other load generators, at the same target within the same minutes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from oku_benchmarks.contest import Contest, Contestant, build_contest_table
from oku_benchmarks.install import describe_missing, find_program
from oku_benchmarks.nginx import ANSWER_KINDS, HTTP2_KINDS, Nginx
from oku_benchmarks.report import Goal, Plan, Report, log
from oku_benchmarks.rivals import (
    AIOHTTP,
    BARE_LOOP,
    H2LOAD,
    HTTP2,
    HTTP2_TLS,
    HTTPTOOLS,
    RATE,
    TWO_REQUESTS,
    USER_CODE,
    WRK,
    build_oku,
)
from oku_benchmarks.targets import DelayServer, Target

_OKU, _LOOP, _OKU_AIOHTTP = "oku", "bare loop", "oku, aiohttp"
_LEAST: Mapping[tuple[str, str], float] = {
    ("", "wrk"): 0.9,
    ("", "h2load"): 0.85,
    ("", "oha"): 1.0,
    ("", "k6"): 1.0,
    ("one request", "locust, master and worker"): 0.95,
    ("two requests", "bare loop"): 0.8,
    ("two requests", "locust"): 2.0,
}
"""The least rate of Oku beside another contestant, in one contest or in all."""


@contextmanager
def open_target(folder: Path) -> Iterator[Target]:
    """nginx, or where that is missing a delay server without delay, which is slower."""
    if find_program("nginx"):
        with Nginx(folder) as nginx:
            yield nginx
    else:
        log(f"  {describe_missing('nginx')}: the target is `oku server`")
        with DelayServer(folder) as server:
            yield server


def measure_rate(plan: Plan) -> Report:
    """As many requests as each can send with 100 and with 1,000 connections."""
    lineup = plan.choose(RATE, {name: RATE[name] for name in (_OKU, "wrk", _LOOP)})
    with open_target(plan.folder / "target") as target:
        contests = {
            f"{connections:,} connections": open_contest(plan, target, lineup, connections)
            for connections in plan.choose((100, 1_000), (100,))
        }
        return hold_contests(plan, contests)


def measure_answers(plan: Plan) -> Report:
    """The same answer again and again, and answers that vary, come in chunks, as JSON or over TLS."""
    oku = replace(HTTPTOOLS, build=build_oku("--engine", "httptools", "--insecure"))
    fast = {_OKU: oku, "wrk": WRK, "h2load": H2LOAD}
    full = {**fast, _OKU_AIOHTTP: AIOHTTP, _LOOP: BARE_LOOP}
    with Nginx(plan.folder / "nginx", has_tls=True) as nginx:
        contests = {
            name: open_contest(plan, nginx.place(kind), full if name in ("same", "varying") else fast)
            for name, kind in ANSWER_KINDS.items()
        }
        return hold_contests(plan, contests)


def measure_http2(plan: Plan) -> Report:
    """HTTP/2 beside h2load, oha and k6: 10 connections with 10 requests in flight on each."""
    with Nginx(plan.folder / "nginx", has_tls=True) as nginx:
        contests = {
            name: open_contest(plan, nginx.place(kind), HTTP2_TLS if kind.is_tls else HTTP2, 10, 10)
            for name, kind in HTTP2_KINDS.items()
        }
        return hold_contests(plan, contests)


def measure_user_code(plan: Plan) -> Report:
    """Iterations of user code: Locust with the same file, and a scenario of two requests beside others."""
    with open_target(plan.folder / "target") as target:
        lineups = {"one request": USER_CODE, "two requests": TWO_REQUESTS}
        return hold_contests(
            plan, {name: open_contest(plan, target, lineup) for name, lineup in lineups.items()}
        )


def open_contest(
    plan: Plan, target: Target, lineup: Mapping[str, Contestant], connections: int = 100, streams: int = 1
) -> Contest:
    """A contest of the usual length."""
    return Contest(
        target=target,
        folder=plan.folder,
        contestants=lineup,
        seconds=plan.choose(4, 1),
        connections=connections,
        streams=streams,
    )


def hold_contests(plan: Plan, contests: Mapping[str, Contest]) -> Report:
    """Hold all contests in each round, and judge the first contestant of each beside the others."""
    names = plan.pick(contests)
    for number in range(plan.rounds):
        for name in names:
            log(f"  {name}")
            contests[name].hold_round(number)
    tables, goals = [], []
    for name in names:
        contest = contests[name]
        first, *others = contest.turns
        tables.append(build_contest_table(name, contest.build_rows(first)))
        goals += contest.goals
        for other in others:
            if (least := _LEAST.get((name, other), _LEAST.get(("", other)))) is None:
                continue
            ratio = contest.compare(first, other, "rate")
            text = f"{name}, {first}: at least {least:g} of the rate of {other}"
            goals.append(Goal(text, ratio.format(".2f"), ratio.median >= least))
    notes = {note for name in names for note in contests[name].list_missing()}
    return Report(tables=tables, goals=goals, notes=sorted(notes))
