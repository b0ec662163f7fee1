"""A hundred million requests, made and accounted: as fast as it goes, and with the delays of the posts.

Both are one real `oku run` in a terminal, with its own delay servers, watched from outside. In the second,
a worker is killed with -9 after a third of the requests and the coordinator after two thirds.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from docs.tools.screens import draw

from oku_benchmarks.cases.window import POSTS_DELAY
from oku_benchmarks.documents.attachments import open_kept
from oku_benchmarks.documents.plot import draw_series
from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.observer import Observation, find_peak_mb
from oku_benchmarks.measuring.series import Series, build_series
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.turns.oku_turn import COORDINATOR, HTTPTOOLS, Load
from oku_benchmarks.turns.own_servers import play_own
from oku_cli.terminal.json_output import build_json
from oku_cli.views.summary_view import build_screen
from oku_core.summary.summary import Summary

NO_DELAY, POSTS = "hundred-million-no-delay", "hundred-million-posts"
_CONCURRENCY = 100
_POSTS_WORKERS, _POSTS_CONCURRENCY = 4, 12_500
_VICTIM = "worker-2"
_LOOK_S = 2.0
_TIMEOUT_S = 4 * 3600.0
_REPORT_EVERY = 0.05


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was killed with -9."""

    process: str
    at_s: float
    """After the first request."""
    sent: int
    """Requests that had reached the servers."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    flags: list[str]
    """Of `oku run`."""
    requests: int
    took_s: float
    """The whole command: with starting and ending the stack."""
    active_s: float
    rate_rps: float
    accounted: int
    served: int
    resent_at_most: int
    notes: list[str]
    """What the summary says beside its figures."""
    kills: list[Kill]
    peaks_mb: dict[str, float]
    """Largest resident memory of each process (VmHWM)."""
    series: Series


def measure_no_delay(plan: Plan, folder: Path) -> Results:
    """As fast as it goes, with the default number of workers."""
    load = Load(
        requests=plan.hundred_million, concurrency=_CONCURRENCY, workers=0, engine=HTTPTOOLS, delay="0s"
    )
    return _measure(NO_DELAY, load, folder, _Killer(()))


def measure_posts(plan: Plan, folder: Path) -> Results:
    """With the delays of the posts, and two processes killed on the way."""
    load = Load(
        requests=plan.hundred_million,
        concurrency=_POSTS_CONCURRENCY,
        workers=_POSTS_WORKERS,
        engine=HTTPTOOLS,
        delay=POSTS_DELAY,
    )
    third = load.requests // 3
    return _measure(POSTS, load, folder, _Killer(((third, _VICTIM), (2 * third, COORDINATOR))))


@dataclass
class _Killer:
    """Kills each process once, when so many requests have reached the servers."""

    due: Sequence[tuple[int, str]]
    kills: list[tuple[float, str, int]] = field(default_factory=list)

    def look(self, sample: Observation) -> None:
        for sent, process in self.due[len(self.kills) :][:1]:
            if sample.sent >= sent and process in sample.pids:
                os.kill(sample.pids[process], signal.SIGKILL)
                self.kills.append((sample.at, process, sample.sent))
                log(f"  {process} is killed after {sample.sent:,} requests")


class _Reporter:
    """Says on the way how far it is."""

    def __init__(self, requests: int) -> None:
        self._step = max(1, int(_REPORT_EVERY * requests))
        self._next = self._step

    def look(self, sample: Observation) -> None:
        if sample.sent >= self._next:
            log(f"  {sample.sent:,} requests have reached the servers")
            self._next = (sample.sent // self._step + 1) * self._step


def _measure(name: str, load: Load, folder: Path, killer: _Killer) -> Results:
    reporter = _Reporter(load.requests)

    def act(sample: Observation) -> None:
        killer.look(sample)
        reporter.look(sample)

    run = play_own(folder, load, timeout_s=_TIMEOUT_S, look_s=_LOOK_S, act=act)
    samples, summary = run.played.turn.samples, run.played.summary
    begin = next(sample.at for sample in samples if sample.sent)
    results = Results(
        flags=load.build_flags(""),
        requests=load.requests,
        took_s=round(run.played.turn.took_s, 1),
        active_s=round(summary.active_s, 1),
        rate_rps=round(summary.throughput_rps, 1),
        accounted=summary.accounted,
        served=_read_served(summary),
        resent_at_most=summary.resent_at_most,
        notes=[f"{validity.flag}: {validity.detail}" for validity in summary.validity],
        kills=[
            Kill(process=process, at_s=round(at - begin, 1), sent=sent) for at, process, sent in killer.kills
        ],
        peaks_mb={
            process: find_peak_mb(samples, process)
            for process in sorted({process for sample in samples for process in sample.vitals})
        },
        series=build_series(samples, run.ticks, _LOOK_S),
    )
    _keep(name, results, summary, open_kept(folder))
    log(f"  {results.accounted:,} accounted in {results.active_s:,.0f} s: {results.rate_rps:,.0f}/s")
    return results


def _read_served(summary: Summary) -> int:
    if summary.servers is None:
        raise BenchmarkError("the delay servers did not report their counts")
    return summary.servers.served


def _keep(name: str, results: Results, summary: Summary, kept: Path) -> None:
    (kept / f"{name}.summary.json").write_bytes(build_json(summary))
    draw(name, build_screen(summary)).replace(kept / f"{name}.screen.svg")
    title = f"{results.requests:,} requests, oku run {' '.join(results.flags[2:])}"
    marks = [(kill.at_s, f"{kill.process} killed") for kill in results.kills]
    draw_series(kept / f"{name}.svg", title, results.series, marks)
