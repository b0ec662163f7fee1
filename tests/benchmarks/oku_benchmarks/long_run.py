"""One run of `oku run` with its own delay servers, watched from outside: rate, memory, requests served."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

from oku_benchmarks.contest import OkuOptions, run_oku
from oku_benchmarks.processes import Look, cut_window, find_peak_mb, find_tree
from oku_benchmarks.report import NONE, Goal, Plan, Report, Table, log
from oku_core.spec.values.delay import parse_delay


@dataclass(frozen=True, kw_only=True)
class LongRun:
    """What is run, and what it must come to."""

    requests: int
    workers: int = 1
    concurrency: int
    engine: str = "httptools"
    delay: str = "0s"
    limit_s: float = 0.0
    most_mb: float = 0.0
    kills: bool = False
    look_s: float = 0.05

    @property
    def flags(self) -> list[str]:
        """The arguments of `oku run`."""
        return [
            "--requests", str(self.requests), "--workers", str(self.workers), "--concurrency",
            str(self.concurrency), "--engine", self.engine, "--delay", self.delay, "--timeout", "60s",
        ]  # fmt: skip


def kill_tree(pids: Sequence[int]) -> None:
    """Kill processes that may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class _Killer:
    def __init__(self, load: LongRun) -> None:
        self.kills: list[str] = []
        self._left = (
            [("worker-2", load.requests // 3), ("coordinator", load.requests * 2 // 3)] if load.kills else []
        )

    def act(self, look: Look, pids: Mapping[str, int]) -> None:
        """Kill the process whose turn it is."""
        if self._left and look.sent >= self._left[0][1] and self._left[0][0] in pids:
            name, _ = self._left.pop(0)
            kill_tree(find_tree(pids[name]))
            self.kills.append(f"{name} killed after {look.sent:,} requests")
            log(f"  {self.kills[-1]}")


def measure_long_run(plan: Plan, load: LongRun) -> Report:
    """Run it, and judge it."""
    killer = _Killer(load)
    options = OkuOptions(timeout_s=4 * load.limit_s + 600, look_s=load.look_s, act=killer.act)
    run = run_oku(plan.folder, load.flags, options)
    summary, window, sent = run.summary, cut_window(run.looks), run.looks[-1].sent
    flags = ", ".join(f"`{each.flag}`" for each in summary.validity) or "none"
    measured = [
        ("accounted", f"{summary.accounted:,}"),
        ("the servers' own counts", f"{sent:,}"),
        ("resent, at most", f"{summary.resent_at_most:,}"),
        ("from the first request to the last answer", f"{summary.active_s:,.1f} s"),
        ("requests/s, without beginning and end", f"{window.rate_rps:,.0f}"),
        (
            "p50 and p99 of the latency",
            f"{summary.latency_ms.p50 or 0:,.0f} ms, {summary.latency_ms.p99 or 0:,.0f} ms",
        ),
        ("flags of the summary", flags),
    ]
    goals = [
        Goal(
            "all accounted; the servers' counts within what may have been resent",
            f"{summary.accounted:,} accounted, {sent:,} served",
            summary.accounted == load.requests <= sent <= load.requests + summary.resent_at_most,
            is_exact=True,
        )
    ]
    if (mean_s := parse_delay(load.delay).mean_s) and not load.kills:
        possible = load.concurrency / mean_s
        share = window.rate_rps / possible
        measured.append(("share of concurrency / mean delay", f"{share:.1%} of {possible:,.0f}/s"))
        text = "at least 97 % of concurrency / mean delay, or `worker_saturated`"
        is_met = share >= 0.97 or "worker_saturated" in flags
        goals.append(Goal(text, f"{share:.1%}, {flags}", is_met))
    if load.limit_s:
        minutes = f"{summary.active_s / 60:.1f} min"
        text = f"at most {load.limit_s / 60:.0f} min"
        goals.append(Goal(text, minutes, summary.active_s <= load.limit_s))
    names = sorted({name for look in run.looks for name in look.vitals})
    peaks_mb = {name: find_peak_mb(run.looks, name) for name in names}
    growths_mb = {name: _measure_growth(run.looks, name) for name in names}
    # What is killed begins anew, and its processor time is that of the process that waited for it.
    shares = {name: f"{window.measure_share(name):.2f}" for name in window.names if not load.kills}
    rows = [
        (name, f"{peaks_mb[name]:.1f} MB", f"{growths_mb[name]:+.1f} MB", shares.get(name, NONE))
        for name in names
    ]
    for row in (*measured, *rows):
        log(f"  {', '.join(row)}")
    largest = max(growths_mb.values())
    text = "no process grows by more than 10 MB from the second tenth of the run to the last"
    goals.append(Goal(text, f"{largest:+.1f} MB", largest <= 10))
    if load.most_mb:
        peak_mb = max(mb for name, mb in peaks_mb.items() if name.startswith(("worker", "coordinator")))
        text = f"workers and coordinator under {load.most_mb:.0f} MB"
        goals.append(Goal(text, f"{peak_mb:.1f} MB", peak_mb < load.most_mb, is_exact=True))
    head = (f"`oku run {' '.join(load.flags[:-2])}`", "")
    tables = [Table(head, measured), Table(("process", "peak memory", "growth", "share of a core"), rows)]
    return Report(tables=tables, goals=goals, notes=[f"{'; '.join(killer.kills)}."] * bool(killer.kills))


def _measure_growth(looks: Sequence[Look], name: str) -> float:
    memory_mb = [look.vitals[name].memory_mb for look in looks if name in look.vitals and look.sent]
    tenth = max(1, len(memory_mb) // 10)
    return median(memory_mb[-tenth:] or [0.0]) - median(memory_mb[tenth : 2 * tenth] or memory_mb or [0.0])
