"""Engines: what a request, or an iteration of user code, costs a worker in processor time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from oku_benchmarks.contest import Contestant, Effort
from oku_benchmarks.nginx import ANSWER_KINDS, HTTP2, HTTP2_KINDS, Nginx
from oku_benchmarks.page import fetch_commit
from oku_benchmarks.peers import hold_contests, open_contest, open_target
from oku_benchmarks.report import Goal, Plan, Report
from oku_benchmarks.rivals import AIOHTTP, HTTPTOOLS, TWO_REQUESTS, WRK, build_oku
from oku_benchmarks.rivals import HTTP2 as HTTP2_RIVALS

_ONE, _TEN, _DATA, _CHECK = (
    "one target",
    "ten targets",
    "ten targets with data",
    "one target, answers checked",
)


def measure_cost(plan: Plan) -> Report:
    """All engines, a scenario and wrk in turn, and with --baseline the engines of another checkout."""
    contestants = {
        "httptools": HTTPTOOLS,
        "aiohttp": AIOHTTP,
        "scenario": TWO_REQUESTS["oku, scenario"],
        "wrk": WRK,
    }
    engines = ("httptools", "aiohttp")
    if plan.baseline:
        python = str(plan.baseline.absolute() / ".venv/bin/python")
        contestants |= {f"{name}, before": replace(contestants[name], python=python) for name in engines}
    with open_target(plan.folder / "target") as target:
        contests = {"100 connections": open_contest(plan, target, contestants)}
        if isinstance(target, Nginx):
            lineup = {"nghttp2": HTTP2_RIVALS["oku"], "h2load, HTTP/2": HTTP2_RIVALS["h2load"]}
            contests[HTTP2] = open_contest(plan, target.place(HTTP2_KINDS[HTTP2]), lineup, 10, 10)
        report, contest = hold_contests(plan, contests), contests["100 connections"]
    goals = [*report.goals]
    for name in engines if plan.baseline else ():
        ratio = contest.compare(name, f"{name}, before", "cpu_us")
        text = f"{name}: a request costs at most 5 % more than at {fetch_commit(plan.baseline or Path())}"
        goals.append(Goal(text, ratio.format(".3f"), ratio.median <= 1.05))
    return replace(report, goals=goals)


def measure_targets(plan: Plan) -> Report:
    """What several targets, data and a check of bodies add to a request of the engine httptools."""
    data = plan.folder / "skus.csv"
    data.write_text("sku,price\n" + "".join(f"SKU-{row:06},{row}\n" for row in range(10_000)))
    ten = [{"name": str(number), "url": f"/{number}/{{i}}"} for number in range(10)]
    rows = [{**target, "url": f"/{target['name']}/{{sku}}?price={{price}}"} for target in ten]
    lineup = {_ONE: HTTPTOOLS, "ten targets": _build_spec(ten), _DATA: _build_spec(rows, f"{data}:repeat")}
    check = replace(HTTPTOOLS, build=build_oku("--engine", "httptools", "--expect-body", "id"))
    with open_target(plan.folder / "target") as target:
        contests = {"the same answer": open_contest(plan, target, lineup)}
        if isinstance(target, Nginx):  # a check of the same answer is made once
            place = target.place(ANSWER_KINDS["varying"])
            contests["answers vary"] = open_contest(plan, place, {_ONE: HTTPTOOLS, _CHECK: check})
        report, goals = hold_contests(plan, contests), list[Goal]()
    for contest, (name, most) in zip(contests.values(), ((_DATA, 1.25), (_CHECK, 1.67)), strict=False):
        ratio = contest.compare(name, _ONE, "cpu_us")
        text = f"{name}: at most {most} times the processor time of one target"
        goals.append(Goal(text, ratio.format(".2f"), ratio.median <= most))
    return replace(report, goals=[*report.goals, *goals])


def _build_spec(targets: Sequence[Mapping[str, str]], data: str = "") -> Contestant:
    def build(_: str, effort: Effort) -> list[str]:
        flags, spec = ("--data", data) if data else (), effort.folder / f"spec-{bool(data)}.json"
        spec.write_text(json.dumps({"base-url": effort.base, "targets": targets, "engine": "httptools"}))
        return [
            str(spec), "--requests", str(effort.requests), "--workers", "1", "--concurrency",
            str(effort.connections), *flags,
        ]  # fmt: skip

    return replace(HTTPTOOLS, build=build, expected_rps=40_000)
