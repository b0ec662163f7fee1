"""A run of many targets and many stages: its account has a part for each pair of both.

How much memory the coordinator takes, for how long its event loop does nothing else, and how long a summary
takes: while the run goes on, at its end, and after the coordinator was started anew with that ledger.
"""

import json
import subprocess
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.runs.local_run import OKU
from tests.kit.workers.worker_process import run_worker

from oku_benchmarks import watched_loop
from oku_benchmarks.processes import read_memory_mb
from oku_benchmarks.report import Goal, Plan, Report, Table, log
from oku_benchmarks.targets import DelayServer

_END_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a run is."""

    targets: int
    stages: int
    stage_s: float
    rate: int

    def build_spec(self, url: str) -> dict[str, object]:
        """The spec of the run."""
        targets = [{"name": f"t{number}", "url": f"/{{i}}?{number}"} for number in range(self.targets)]
        stages = [f"s{number}={self.stage_s}s:{self.rate}/s" for number in range(self.stages)]
        return {"base-url": url, "targets": targets, "stages": stages, "workers": 2}


class Phase:
    """What was seen of one coordinator: its largest memory, the gaps of its event loop, the longest summary.

    On a machine that does nothing else, a gap would be as long as its processor time at most.
    """

    def __init__(self, api: CoordinatorApi, run: str, gaps: Path) -> None:
        self._api, self._run, self._gaps = api, run, gaps
        self.peak_mb = self.summary_s = self.gap_ms = self.gap_cpu_ms = 0.0

    def look(self) -> dict[str, object]:
        """Fetch a summary."""
        began = time.monotonic()
        summary = self._api.summary(self._run)
        self.summary_s = max(self.summary_s, time.monotonic() - began)
        self.peak_mb = max(self.peak_mb, read_memory_mb(self._api.pid))
        lines = self._gaps.read_text().splitlines() if self._gaps.exists() else []
        for _, late_s, cpu_s in (map(float, line.split()) for line in lines):
            self.gap_ms, self.gap_cpu_ms = max(self.gap_ms, 1000 * late_s), max(self.gap_cpu_ms, 1000 * cpu_s)
        return summary

    @property
    def cells(self) -> list[str]:
        """The figures, as the table has them."""
        return [f"{self.peak_mb:.0f} MB", f"{self.gap_ms:.0f} ms", f"{self.summary_s:.2f} s"]


def measure_parts(plan: Plan) -> Report:
    """Runs of up to 100 targets in 100 stages: memory, gaps of the event loop, summaries."""
    full = (
        Size(targets=1, stages=1, stage_s=30, rate=2_000),
        Size(targets=30, stages=20, stage_s=2, rate=1_000),
        Size(targets=100, stages=100, stage_s=1, rate=1_000),
    )
    rows, goals = [], []
    for size in plan.choose(full, (Size(targets=30, stages=12, stage_s=0.5, rate=400),)):
        row, judged = _play(plan.make_folder(f"{size.targets}"), size)
        rows.append(row)
        goals += judged
        log(f"  {', '.join(row)}")
    head = (
        "targets, stages", "requests", "peak memory", "longest gap", "summary", "anew: peak memory",
        "longest gap", "summary", "ledger", "summary's JSON", "`oku report`",
    )  # fmt: skip
    return Report(tables=[Table(head, rows)], goals=goals)


def _play(folder: Path, size: Size) -> tuple[list[str], list[Goal]]:
    """A run from its beginning to its end, and the coordinator started anew after it."""
    data, gaps = folder / "data", [folder / "gaps-1", folder / "gaps-2"]
    with ExitStack() as exits:
        exits.enter_context(exported_message_key())
        broker_url = exits.enter_context(run_broker(folder))
        server = exits.enter_context(DelayServer(folder / "server", "lognormal:20ms,0.6"))
        for name in ("worker-1", "worker-2"):
            exits.enter_context(run_worker(broker_url, name=name, log=folder / f"{name}.log"))
        with _watch(broker_url, data, gaps[0]) as api:
            run = api.submit(**size.build_spec(server.base))
            first, deadline = Phase(api, run, gaps[0]), time.monotonic() + _END_S
            while (summary := first.look())["state"] != "completed" and time.monotonic() < deadline:
                time.sleep(1.0)
        with _watch(broker_url, data, gaps[1]) as api:
            anew = Phase(api, run, gaps[1])
            summary = anew.look()
            began, report = time.monotonic(), str(folder / "report.html")
            where = ("--coordinator", api.url, "--token", TOKEN)
            subprocess.run([*OKU, "report", run, "--output", report, *where], check=True, capture_output=True)
            report_s = time.monotonic() - began
            anew.look()
    sizes_mb = ((data / "ledger.sqlite3").stat().st_size / 1e6, len(json.dumps(summary)) / 1e6)
    row = [
        f"{size.targets}, {size.stages}", f"{summary['accounted']:,}", *first.cells, *anew.cells,
        *(f"{size_mb:.2f} MB" for size_mb in sizes_mb), f"{report_s:.1f} s",
    ]  # fmt: skip
    return row, _judge(size, summary, first, anew)


def _watch(broker_url: str, data: Path, gaps: Path) -> AbstractContextManager[CoordinatorApi]:
    """A coordinator whose event loop is watched."""
    program = (sys.executable, watched_loop.__file__, str(gaps))
    # Any port that is free at its second start, too.
    return run_coordinator(broker_url, data, "--files-port", "0", program=program)


def _judge(size: Size, summary: dict[str, object], first: Phase, anew: Phase) -> list[Goal]:
    planned = round(size.stages * size.stage_s * size.rate)
    most_mb = 130 + 0.027 * size.targets * size.stages  # a part used to take 0.57 MB
    peak_mb, gap_cpu_ms, summary_s = (
        max(getattr(phase, figure) for phase in (first, anew))
        for figure in ("peak_mb", "gap_cpu_ms", "summary_s")
    )
    label = f"{size.targets} targets in {size.stages} stages"
    return [
        Goal(
            f"{label}: exactly the planned requests",
            f"{summary['accounted']} of {planned}",
            summary["accounted"] == planned,
            is_exact=True,
        ),
        Goal(
            f"{label}: coordinator under {most_mb:.0f} MB",
            f"{peak_mb:.0f} MB",
            peak_mb < most_mb,
            is_exact=True,
        ),
        Goal(
            f"{label}: no gap of the event loop takes 100 ms of processor time",
            f"{gap_cpu_ms:.0f} ms",
            gap_cpu_ms < 100,
            is_exact=True,
        ),
        Goal(f"{label}: a summary in less than 1 s", f"{summary_s:.2f} s", summary_s < 1),
    ]
