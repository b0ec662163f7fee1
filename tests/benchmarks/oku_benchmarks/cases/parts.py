"""A run of many targets and many stages: its account has a part for each of both.

How much memory the coordinator takes, for how long its event loop does nothing else, and how long a summary
takes: while the run goes on, at its end, and after the coordinator was started anew with that ledger.
"""

import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from oku_benchmarks.error import BenchmarkError
from oku_benchmarks.measuring.vitals import find_children, read_vitals
from oku_benchmarks.plan import Plan
from oku_benchmarks.progress import log
from oku_benchmarks.stacks.checkout import Checkout
from oku_benchmarks.stacks.real_stack import COORDINATOR, RealStack, open_stack

DELAY = "lognormal:20ms,0.6"
WORKERS = ("worker-1", "worker-2")
_FLAGS = ("--files-port", "0")
"""Any port that is free at its second start, too."""
_LOOK_S = 2.0
_END_S = 600.0
_MOST_PARTS_BEFORE = 1_000
"""The other checkout does not play larger runs: an older one takes gigabytes for them."""


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large a run is."""

    targets: int
    stages: int
    stage_s: float
    rate: int


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to; seconds and MB are the largest that were seen."""

    commit: str
    size: Size
    requests: int
    ledger_mb: float
    summary_mb: float
    """The JSON of the summary at the end."""
    peak_mb: float
    """Of the coordinator, as the next three are until its end."""
    gap_ms: float
    gap_cpu_ms: float = 0.0
    """The most CPU time that the process took in a gap (`watched_loop`); 0 where it was not measured."""
    live_summary_s: float
    scrape_s: float
    end_summary_s: float
    """The first one after the end."""
    restart_s: float
    """Until it listens."""
    restarted_peak_mb: float
    restarted_gap_ms: float
    restarted_gap_cpu_ms: float = 0.0
    restarted_summary_s: float
    worker_mb: float
    command_mb: float
    """Of `oku run`, which follows the run."""
    show_s: float
    show_mb: float
    report_s: float
    report_mb: float


class _Gaps(NamedTuple):
    """Of an event loop: the longest one, and the most CPU time that its process took in one."""

    longest_ms: float
    most_cpu_ms: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs: those of the other checkout first, if there is one."""

    runs: list[Played]


def measure(plan: Plan, folder: Path) -> Results:
    """Play each size in each checkout."""
    checkouts = [("before", Path(plan.baseline))] if plan.baseline else []
    runs = []
    for name, where in (*checkouts, ("now", None)):
        for number, size in enumerate(plan.part_sizes):
            if name == "before" and size[0] * size[1] > _MOST_PARTS_BEFORE:
                continue
            targets, stages, stage_s, rate = size
            played = play(
                Checkout(where),
                folder / f"{name}-{number}",
                Size(targets=targets, stages=stages, stage_s=stage_s, rate=rate),
                name,
            )
            log(f"  {name}: {msgspec.json.encode(played).decode()}")
            runs.append(played)
    return Results(runs=runs)


def play(checkout: Checkout, folder: Path, size: Size, name: str = "now") -> Played:
    """A run from its beginning to its end, and the coordinator started anew after it."""
    with open_stack(checkout, folder) as stack:
        return _Play(stack, size, name).play()


class _Play:
    def __init__(self, stack: RealStack, size: Size, name: str) -> None:
        self._stack = stack
        self._size = size
        self._name = name
        self._gaps = stack.folder / "gaps.txt"

    def play(self) -> Played:
        stack = self._stack
        stack.start_coordinator(flags=_FLAGS, gaps_file=self._gaps)
        url = stack.start_server(DELAY)
        stack.start_workers(*WORKERS)
        command = stack.submit("run", "run", str(self._write_spec(url)), "--workers", str(len(WORKERS)))
        run = stack.wait_for_run("run")
        live, scrapes, command_mb, worker_mb = [0.0], [0.0], 0.0, 0.0
        ends_at = time.monotonic() + _END_S
        while command.child.find_death() is None:
            if time.monotonic() > ends_at:
                raise BenchmarkError("the run does not end")
            command_mb = self._read_peak_mb("run", command_mb)
            worker_mb = max(self._read_peak_mb(worker, worker_mb) for worker in WORKERS)
            live.append(_time(lambda: self._get(f"/api/runs/{run}")))
            scrapes.append(_time(lambda: self._get("/metrics")))
            command.child.wait(_LOOK_S)
        account = command.wait(_END_S)
        end_summary_s = _time(lambda: self._get(f"/api/runs/{run}"))
        summary = self._get(f"/api/runs/{run}")
        time.sleep(_LOOK_S)
        peak_mb, gap = self._read_peak_mb(COORDINATOR), self._read_gaps()
        stack.end(COORDINATOR)
        self._gaps.unlink(missing_ok=True)
        restart_s = _time(lambda: stack.start_coordinator(flags=_FLAGS, gaps_file=self._gaps))
        restarted_summary_s = _time(lambda: self._get(f"/api/runs/{run}"))
        show_s, show_mb = self._call("show", run)
        report_s, report_mb = self._call("report", run, "--output", str(stack.folder / "report.html"))
        restarted_gap = self._read_gaps()
        return Played(
            commit=self._name,
            size=self._size,
            requests=account.accounted,
            ledger_mb=round((stack.folder / "data/ledger.sqlite3").stat().st_size / 1e6, 1),
            summary_mb=round(len(summary) / 1e6, 2),
            peak_mb=peak_mb,
            gap_ms=gap.longest_ms,
            gap_cpu_ms=gap.most_cpu_ms,
            live_summary_s=round(max(live), 3),
            scrape_s=round(max(scrapes), 3),
            end_summary_s=round(end_summary_s, 3),
            restart_s=round(restart_s, 2),
            restarted_peak_mb=self._read_peak_mb(COORDINATOR),
            restarted_gap_ms=restarted_gap.longest_ms,
            restarted_gap_cpu_ms=restarted_gap.most_cpu_ms,
            restarted_summary_s=round(restarted_summary_s, 3),
            worker_mb=worker_mb,
            command_mb=command_mb,
            show_s=show_s,
            show_mb=show_mb,
            report_s=report_s,
            report_mb=report_mb,
        )

    def _write_spec(self, url: str) -> Path:
        size, spec = self._size, self._stack.folder / "spec.json"
        spec.write_bytes(
            msgspec.json.encode(
                {
                    "base-url": url,
                    "targets": [
                        {"name": f"t{number}", "url": f"/{{i}}?{number}"} for number in range(size.targets)
                    ],
                    "stages": [f"s{number}={size.stage_s}s:{size.rate}/s" for number in range(size.stages)],
                }
            )
        )
        return spec

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(
            self._stack.url + path, headers={"Authorization": f"Bearer {self._stack.token}"}
        )
        with urllib.request.urlopen(request, timeout=_END_S) as answer:
            body: bytes = answer.read()
            return body

    def _call(self, verb: str, *arguments: str) -> tuple[float, float]:
        """How long a command takes, and its peak memory."""
        began, peak_mb = time.monotonic(), 0.0
        child = self._stack.start_command(verb, verb, *arguments, *self._stack.where)
        while child.find_death() is None:
            peak_mb = self._read_peak_mb(verb, peak_mb)
            child.wait(0.01)
        return round(time.monotonic() - began, 2), peak_mb

    def _read_peak_mb(self, name: str, least: float = 0.0) -> float:
        pid = self._stack.find_pid(name)
        seen = [read_vitals(each) for each in (pid, *find_children(pid))]
        return max(least, *(round(vitals.peak_rss_mb, 1) for vitals in seen if vitals is not None), 0.0)

    def _read_gaps(self) -> _Gaps:
        lines = self._gaps.read_text().splitlines() if self._gaps.exists() else []
        gaps = [tuple(map(float, line.split())) for line in lines]
        return _Gaps(
            longest_ms=round(1000 * max((late_s for _, late_s, _ in gaps), default=0.0), 1),
            most_cpu_ms=round(1000 * max((cpu_s for *_, cpu_s in gaps), default=0.0), 1),
        )


def _time(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
