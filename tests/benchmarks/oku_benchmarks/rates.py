"""Rates: who keeps to a constant rate, at what cost, and who reports it when the target freezes.

All get as many connections. Where a tool wants the rate of each connection, it gets its share of it.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oku_benchmarks.arrivals import (
    ArrivalTarget,
    Load,
    Punctuality,
    build_server,
    judge_arrivals,
    open_arrival_target,
)
from oku_benchmarks.contest import OkuOptions, OkuRun, run_oku
from oku_benchmarks.install import find_program, list_missing
from oku_benchmarks.processes import Look, Observer, cut_window
from oku_benchmarks.report import NONE, BenchmarkError, Goal, Plan, Report, Table, build_spread, log
from oku_benchmarks.rivals import write_script
from oku_cli.process.child import Child
from oku_core.accounting.histogram import find_rank

CONNECTIONS = 100
_LIMIT_S = 120.0
_OKU, _SEND, _UNCAPPED = "oku", "oku, `--late send`", "oku, no cap"
_RESPONSE = ": response time"
_ONE_WORKER = ("--workers", "1", "--concurrency", str(CONNECTIONS))
_KINDS: Mapping[str, Sequence[str]] = {
    _OKU: _ONE_WORKER,
    "oku, 2 workers": ("--workers", "2", "--concurrency", str(CONNECTIONS)),
    "oku, 4 workers": ("--workers", "4", "--concurrency", str(CONNECTIONS)),
}
_FREEZE_KINDS: Mapping[str, Sequence[str]] = {
    _OKU: _ONE_WORKER,
    _SEND: (*_ONE_WORKER, "--late", "send"),
    _UNCAPPED: ("--workers", "1"),
}


@dataclass(frozen=True)
class Reported:
    """What a tool reports of its requests and of what it calls latency; `left_out` is None if it does not."""

    requests: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    left_out: int | None = None


@dataclass(frozen=True, kw_only=True)
class PacedRival:
    """A load generator that keeps to a rate."""

    program: str
    build: Callable[[str, str, Load, Path], Sequence[str]]
    read: Callable[[Any], Reported]
    is_variant: bool = False


def read_oha(document: Any) -> Reported:
    """Seconds."""
    quantiles, statuses = document["latencyPercentiles"], document["statusCodeDistribution"]
    times = [1e3 * each for each in (quantiles["p50"], quantiles["p99"], document["summary"]["slowest"])]
    return Reported(sum(statuses.values()), *times)


def read_vegeta(document: Any) -> Reported:
    """Nanoseconds."""
    times = [document["latencies"][name] / 1e6 for name in ("50th", "99th", "max")]
    return Reported(document["requests"], *times)


def read_fortio(document: Any) -> Reported:
    """Seconds."""
    histogram = document["DurationHistogram"]
    quantiles = {each["Percentile"]: each["Value"] for each in histogram["Percentiles"]}
    times = [1e3 * each for each in (quantiles[50], quantiles[99], histogram["Max"])]
    return Reported(histogram["Count"], *times)


def read_k6(document: Any) -> Reported:
    """Milliseconds, and the iterations that it dropped."""
    metrics, duration = document["metrics"], document["metrics"]["http_req_duration"]
    dropped = metrics.get("dropped_iterations", {}).get("count", 0)
    p50, p99, most = (duration[name] for name in ("med", "p(99)", "max"))
    return Reported(metrics["http_reqs"]["count"], p50, p99, most, dropped)


def _oha(program: str, url: str, load: Load, report: Path) -> list[str]:
    return [
        program, "--no-tui", "--output-format", "json", "--output", str(report), "-c", str(CONNECTIONS), "-q",
        str(load.rate), "-z", f"{load.run_s}s", url,
    ]  # fmt: skip


def _vegeta(program: str, url: str, load: Load, report: Path) -> list[str]:
    targets = report.with_suffix(".targets")
    targets.write_text(f"GET {url}\n")
    return [
        program, "attack", "-targets", str(targets), "-output", str(report), "-rate", f"{load.rate}/1s",
        "-duration", f"{load.run_s}s",
    ]  # fmt: skip


def _k6(program: str, url: str, load: Load, report: Path) -> list[str]:
    values = {"TARGET": url, "RATE": load.rate, "SECONDS": load.run_s, "CONNECTIONS": CONNECTIONS}
    return [
        program, "run", "--quiet", "--no-usage-report", "--address", "", "--summary-export", str(report),
        *(word for name, value in values.items() for word in ("-e", f"{name}={value}")),
        write_script(report.parent, "k6_rate.js"),
    ]  # fmt: skip


def _fortio(program: str, url: str, load: Load, report: Path) -> list[str]:
    return [
        program, "load", "-quiet", "-uniform", "-c", str(CONNECTIONS), "-qps", str(load.rate), "-t",
        f"{load.run_s}s", "-r", "0.0001", "-p", "50,99", "-json", str(report), url,
    ]  # fmt: skip


_CAP = ("-workers", str(CONNECTIONS), "-max-workers", str(CONNECTIONS))
PACED: Mapping[str, PacedRival] = {
    "oha": PacedRival(program="oha", build=_oha, read=read_oha),
    "oha, corrected": PacedRival(
        program="oha",
        build=lambda *given: [*_oha(*given), "--latency-correction"],
        read=read_oha,
        is_variant=True,
    ),
    "vegeta": PacedRival(program="vegeta", build=lambda *given: [*_vegeta(*given), *_CAP], read=read_vegeta),
    "vegeta, no cap": PacedRival(program="vegeta", build=_vegeta, read=read_vegeta, is_variant=True),
    "fortio": PacedRival(program="fortio", build=_fortio, read=read_fortio),
    "k6": PacedRival(program="k6", build=_k6, read=read_k6),
}


def measure_rates(plan: Plan) -> Report:
    """Each tool keeps 1,000/s and 20,000/s with 100 connections; the target notes when requests arrive."""
    program, tables, goals = build_server(plan.folder), [], []
    for rate in plan.choose((1_000, 20_000), (500,)):
        load, rows = Load(rate=rate, run_s=plan.choose(6, 3)), []
        for name in (*_KINDS, *(name for name, rival in PACED.items() if not rival.is_variant)):
            if name in PACED and not find_program(PACED[name].program):
                continue
            turns = [_play_punctually(plan, program, name, load) for _ in range(plan.rounds)]
            rows.append([name, *_summarise(turns)])
            log(f"  {rate:,}/s, {', '.join(rows[-1])}")
            if name in _KINDS:
                goals += _judge(f"{rate:,}/s, {name}", [seen for seen, _ in turns], rate * load.run_s)
        head = ("requests", "off", "worst", "late p50, ms", "p99, ms", "p99.9, ms", "µs of CPU each")
        tables.append(Table((f"{rate:,}/s for {load.run_s} s", *head), rows))
    return Report(
        tables=tables,
        goals=goals,
        notes=list_missing(rival.program for rival in PACED.values() if not find_program(rival.program)),
    )


def _summarise(turns: Sequence[tuple[Punctuality, float]]) -> list[str]:
    seen = [each for each, _ in turns]
    return [
        build_spread(each.arrived for each in seen).format(),
        build_spread(each.off_seconds for each in seen).format(),
        build_spread(each.worst_off for each in seen).format(),
        *(build_spread(each.late_ms[place] for each in seen).format(",.2f") for place in range(3)),
        build_spread(cpu_us for _, cpu_us in turns).format(".1f"),
    ]


def _judge(label: str, seen: Sequence[Punctuality], planned: int) -> list[Goal]:
    p99, p99_9 = (build_spread(each.late_ms[place] for each in seen).median for place in (1, 2))
    return [
        Goal(
            f"{label}: exactly the planned requests",
            ", ".join(f"{each.arrived:,}" for each in seen),
            all(each.arrived == planned for each in seen),
            is_exact=True,
        ),
        Goal(
            f"{label}: late by less than 2 ms (p99) and 5 ms (p99.9)",
            f"{p99:.2f} ms, {p99_9:.2f} ms",
            p99 < 2 and p99_9 < 5,
        ),
    ]


def _play_punctually(plan: Plan, program: Path, name: str, load: Load) -> tuple[Punctuality, float]:
    """What the target saw, and the processor time of a request over all processes of the tool, in µs."""
    with open_arrival_target(program, plan.folder, load) as target:
        if name in _KINDS:
            looks = _play_oku(plan, target, load, _KINDS[name]).looks
        else:
            looks, _ = _play_rival(plan, target, load, PACED[name])
        arrivals = target.read_arrivals()
    if len(arrivals) < 2:
        raise BenchmarkError(f"{name} sent {len(arrivals)} requests")
    window = cut_window(looks)
    cpu_s = sum(window.measure_cpu_s(process) for process in window.names)
    return judge_arrivals(arrivals, load.rate, load.run_s), cpu_s / window.sent * 1e6


def _play_oku(plan: Plan, target: ArrivalTarget, load: Load, flags: Sequence[str]) -> OkuRun:
    rate = ["--engine", "httptools", "--rate", f"{load.rate}/s", "--duration", f"{load.run_s}s"]
    options = OkuOptions(count=target.read_served, look_s=0.2, timeout_s=_LIMIT_S)
    return run_oku(plan.folder, [target.url, *rate, *flags], options)


def _play_rival(
    plan: Plan, target: ArrivalTarget, load: Load, rival: PacedRival
) -> tuple[Sequence[Look], Reported]:
    program, report = find_program(rival.program), plan.folder / "report"
    assert program is not None
    report.unlink(missing_ok=True)
    command = rival.build(program, target.url.format(i=1), load, report)
    child = Child("rival", command, plan.folder / "rival.log", os.environ)
    child.start()
    looks = Observer(target.read_served, lambda: {"rival": child.pid}, 0.2).follow(child, _LIMIT_S)
    text = report.read_bytes()
    if rival.program == "vegeta":
        text = subprocess.run(
            [program, "report", "-type=json", str(report)], capture_output=True, check=True
        ).stdout
    return looks, rival.read(json.loads(text))


def measure_freeze(plan: Plan) -> Report:
    """The target stops answering for 2 s: which p99 does each tool report?"""
    load = plan.choose(
        Load(rate=1_000, run_s=15, freeze_at_s=11.5, freeze_s=2.0, delay_ms=10.0),
        Load(rate=500, run_s=5, freeze_at_s=2.5, freeze_s=1.5, delay_ms=10.0),
    )
    program, waits = build_server(plan.folder), load.list_waits_ms()
    truth_ms, rows, goals = waits[find_rank(0.99, len(waits)) - 1], [], []
    for name in (*_FREEZE_KINDS, *PACED):
        if name in PACED and not find_program(PACED[name].program):
            continue
        with open_arrival_target(program, plan.folder, load) as target:
            if name in _FREEZE_KINDS:
                times = _list_times(_play_oku(plan, target, load, _FREEZE_KINDS[name]))
            else:
                times = {"": _play_rival(plan, target, load, PACED[name])[1]}
        for label, each in times.items():
            left_out = NONE if each.left_out is None else f"{each.left_out:,}"
            cells = [f"{ms:,.1f}" for ms in (each.p50_ms, each.p99_ms, each.max_ms)]
            stall = "yes" if each.p99_ms >= truth_ms / 2 else "no"
            rows.append((f"{name}{label}", f"{each.requests:,}", left_out, *cells, stall))
            log(f"  {', '.join(rows[-1])}")
        if name == _SEND:
            p99_ms = times[_RESPONSE].p99_ms
            text = f"{_SEND}: p99 of the response time within 10 % of {truth_ms:,.0f} ms"
            is_met = abs(p99_ms - truth_ms) < 0.1 * truth_ms
            goals.append(Goal(text, f"{p99_ms:,.0f} ms", is_met))
    title = f"{load.rate:,}/s, frozen for {load.freeze_s:g} s"
    head = (title, "requests", "left out", "p50, ms", "p99, ms", "max, ms", "stall")
    return Report(
        tables=[Table(head, rows)],
        goals=goals,
        notes=list_missing(rival.program for rival in PACED.values() if not find_program(rival.program)),
    )


def _list_times(run: OkuRun) -> dict[str, Reported]:
    summary = run.summary
    left_out = summary.outcomes.not_sent
    times = {
        ": latency": summary.latency_ms,
        _RESPONSE: summary.response_time_ms,
        ": lateness": summary.lateness_ms,
    }
    sent = summary.accounted - left_out
    return {
        label: Reported(sent, each.p50 or 0.0, each.p99 or 0.0, each.max or 0.0, left_out)
        for label, each in times.items()
    }
