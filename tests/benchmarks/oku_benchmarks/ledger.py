"""Ledger: how large it grows, what many workers cost the coordinator, and a ledger of many days.

Coordinator, broker and every message and transaction are real; the workers are simulated and send no request.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.kit.brokers.broker import run_broker
from tests.kit.brokers.message_key import exported_message_key
from tests.kit.coordinators.coordinator import TOKEN, CoordinatorApi, run_coordinator
from tests.kit.coordinators.long_ledger import LONG_RUN, make_long_ledger
from tests.kit.runs.local_run import OKU

from oku_benchmarks.processes import read_cpu_s, read_memory_mb
from oku_benchmarks.report import BenchmarkError, Goal, Plan, Report, Table, log
from oku_core.accounting.histogram import find_rank

_WORKER_RPS = 667  # as in the posts' own case
_NOBODY = "http://127.0.0.1:9/{i}"  # simulated workers do not ask it
_LIMIT_S = 600.0


class SimulatedStack:
    """What runs; `folder` may have a ledger in its `data`."""

    def __init__(self, folder: Path, broker_url: str, exits: ExitStack) -> None:
        self.said, self.ledger = folder / "simulated.json", folder / "data/ledger.sqlite3"
        self._folder, self._broker_url, self._exits, self._count = folder, broker_url, exits, 0
        self._workers: subprocess.Popen[bytes] | None = None
        self.api = self._start_coordinator()

    @property
    def broker_pid(self) -> int:
        """The broker, which is a child of this process."""
        name = "valkey-server"
        children = (path.read_text() for path in Path("/proc/self/task").glob("*/children"))
        pids = [pid for text in children for pid in text.split()]
        return next(int(pid) for pid in pids if name in Path(f"/proc/{pid}/cmdline").read_text())

    def restart_coordinator(self) -> float:
        """Kill the coordinator and start it again; the seconds until it is ready."""
        os.kill(self.api.pid, signal.SIGKILL)
        began = time.monotonic()
        self.api = self._start_coordinator()
        return time.monotonic() - began

    def start_workers(self, workers: int, rate_rps: float) -> None:
        """Start simulated workers of so many requests per second each, in one process."""
        self._count = workers
        arguments = (self._broker_url, str(workers), str(rate_rps), str(self.said))
        command = [sys.executable, "-m", "oku_benchmarks.simulated_fleet", *arguments]
        with (self._folder / "workers.log").open("w") as log_file:
            self._workers = subprocess.Popen(command, stderr=log_file)
        self._exits.callback(self.end_workers, signal.SIGKILL)

    def end_workers(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the workers; without being killed they report what they did."""
        assert self._workers is not None
        self._workers.send_signal(number)
        self._workers.wait(30)

    def submit(self, requests: int, range_size: int) -> str:
        """Start a run with 1,000 requests in flight for each worker; its id."""
        spec = {"url": _NOBODY, "requests": requests, "range-size": range_size}
        return self.api.submit(**spec, concurrency=1_000 * self._count)

    def wait_for(self, run: str, accounted: int) -> dict[str, Any]:
        """Wait until so many requests are accounted; the summary."""
        deadline = time.monotonic() + _LIMIT_S
        while (summary := self.api.summary(run))["accounted"] < accounted:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{accounted:,} requests were not accounted within {_LIMIT_S:.0f} s")
            time.sleep(0.1)
        return summary

    def wait_for_leases(self, workers: int) -> None:
        """Wait until exactly so many workers have leases."""
        deadline = time.monotonic() + _LIMIT_S
        sql = "SELECT count(DISTINCT worker) FROM leases WHERE state = 'active'"
        while self.count(sql) != workers:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{workers:,} workers did not get leases within {_LIMIT_S:.0f} s")
            time.sleep(0.2)

    def count(self, sql: str) -> int:
        """The number that a query of the ledger gives."""
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True, timeout=10)) as database:
            return int(database.execute(sql).fetchone()[0])

    def _start_coordinator(self) -> CoordinatorApi:
        return self._exits.enter_context(run_coordinator(self._broker_url, self.ledger.parent))


@contextmanager
def open_stack(folder: Path) -> Iterator[SimulatedStack]:
    """A stack without workers, until the end of the block; `folder` must be there."""
    with ExitStack() as exits:
        exits.enter_context(exported_message_key())
        yield SimulatedStack(folder, exits.enter_context(run_broker(folder)), exits)


def measure_requests(plan: Plan) -> Report:
    """The ledger of a hundred million requests, and of a trillion; the coordinator is killed on the way."""
    full = ((100_000_000, 15_000, 10, 75.0), (10**12, 10_000, 200, 60.0))
    rows, goals = [], []
    for requests, leases, workers, seconds in plan.choose(full, ((10_000_000, 300, 10, 4.0),)):
        with open_stack(plan.make_folder(str(requests))) as stack:
            stack.start_workers(workers, requests / seconds / workers)
            run = stack.submit(requests, -(-requests // leases))
            stack.wait_for(run, requests // 2)
            cpu_s = read_cpu_s(stack.api.pid)
            ready_s = stack.restart_coordinator()
            summary = stack.wait_for(run, requests)
            cpu_s += read_cpu_s(stack.api.pid)
            memory_mb = [read_memory_mb(pid) for pid in (stack.api.pid, stack.broker_pid)]
            cut = stack.count("SELECT count(*) FROM leases")
        ledger_mb, label = stack.ledger.stat().st_size / 1e6, f"{requests:,} requests"
        rows.append((
            f"{requests:,}", f"{cut:,}", f"{ledger_mb:.2f} MB", f"{ledger_mb * 1e6 / cut:.0f} bytes",
            *(f"{each:.0f} MB" for each in memory_mb), f"{cpu_s / cut * 1e3:.1f} ms", f"{ready_s:.2f} s",
        ))  # fmt: skip
        log(f"  {', '.join(rows[-1])}")
        accounted, resent = summary["accounted"], summary["resent_at_most"]
        goals += [
            Goal(
                f"{label}: each accounted once",
                f"{accounted:,}, at most {resent:,} resent",
                accounted == requests and not resent,
                is_exact=True,
            ),
            Goal(
                f"{label}: a ledger of at most 1 kB for each lease, and 1 MB",
                f"{ledger_mb:.2f} MB",
                ledger_mb <= 1 + cut / 1e3,
                is_exact=True,
            ),
            Goal(f"{label}: ready within 5 s", f"{ready_s:.2f} s", ready_s <= 5),
        ]
    head = (
        "requests", "leases", "ledger", "for each lease", "coordinator", "broker",
        "coordinator's CPU for each lease", "ready after `kill -9`",
    )  # fmt: skip
    return Report(tables=[Table(head, rows)], goals=goals)


def measure_workers(plan: Plan) -> Report:
    """What 10 to 10,000 workers cost the coordinator, and how long they wait for it."""
    steps = plan.choose(((10, 10, 20), (100, 10, 20), (1_000, 10, 30), (10_000, 100, 170)), ((20, 10, 4),))
    rows, goals = [], []
    for workers, lease_s, window_s in steps:
        row, waited = _measure_step(plan, workers, lease_s, window_s)
        rows.append(row)
        log(f"  {', '.join(row)}")
        text = f"{workers:,} workers: they wait for leases or limits in under 1 % of their time"
        goals.append(Goal(text, f"{waited:.2%}", waited < 0.01))
    head = (
        "workers", "lease", "dealt", "checkpoints/s", "coordinator's cores", "memory", "broker's cores",
        "memory", "confirmed, p50", "p99", "waited",
    )  # fmt: skip
    return Report(tables=[Table(head, rows)], goals=goals)


def _measure_step(plan: Plan, workers: int, lease_s: int, window_s: float) -> tuple[list[str], float]:
    """The row of a number of workers, and the share of their time in which they waited."""
    with open_stack(plan.make_folder(str(workers))) as stack:
        stack.start_workers(workers, _WORKER_RPS)
        began = time.monotonic()
        stack.submit(10**12, lease_s * _WORKER_RPS)
        stack.wait_for_leases(workers)
        dealt_s = time.monotonic() - began
        time.sleep(plan.choose(15 + workers / 50, 3))  # until the coordinator knows how fast they are
        pids = (stack.api.pid, stack.broker_pid)
        begin, before = time.time(), [read_cpu_s(pid) for pid in pids]
        time.sleep(window_s)
        end = time.time()
        figures = [
            cell
            for pid, cpu_s in zip(pids, before, strict=True)
            for cell in (f"{(read_cpu_s(pid) - cpu_s) / (end - begin):.3f}", f"{read_memory_mb(pid):.0f} MB")
        ]
        stack.end_workers()
        said = json.loads(stack.said.read_bytes())
    looks = [look for look in said["looks"] if begin <= look[0] <= end]
    confirmed = sorted(took_s for at, took_s in said["confirmed"] if begin <= at <= end)
    if len(looks) < 2 or not confirmed:
        raise BenchmarkError("the simulated workers were too busy to be measured")
    (first_at, _, first_waited_s, first_sent), (last_at, _, last_waited_s, last_sent) = looks[0], looks[-1]
    waited = (last_waited_s - first_waited_s) / (last_at - first_at) / workers
    quantiles_ms = [1000 * confirmed[find_rank(each, len(confirmed)) - 1] for each in (0.5, 0.99)]
    row = [
        f"{workers:,}", f"{lease_s} s", f"{dealt_s:.0f} s",
        f"{(last_sent - first_sent) / (last_at - first_at):.1f}", *figures,
        *(f"{each:,.0f} ms" for each in quantiles_ms), f"{waited:.2%}",
    ]  # fmt: skip
    return row, waited


def measure_days(plan: Plan) -> Report:
    """A ledger of thousands of runs, one of them with millions of leases: who waits, and for how long?"""
    runs, leases, samples, workers = plan.choose((2_000, 2_000_000, 3_600, 1_000), (50, 20_000, 100, 20))
    folder, waits_ms, commands_s = plan.make_folder("days"), dict[str, list[float]](), dict[str, float]()
    (folder / "data").mkdir(mode=0o700)
    make_long_ledger(folder / "data/ledger.sqlite3", runs=runs, leases=leases, samples=samples)
    ledger_mb = (folder / "data/ledger.sqlite3").stat().st_size / 1e6
    with open_stack(folder) as stack:
        ready_s = stack.restart_coordinator()
        with _probe(stack, waits_ms.setdefault("nothing goes on", [])):
            time.sleep(plan.choose(5, 1))
        stack.start_workers(workers, 100.0)
        stack.api.call("POST", f"/api/runs/{LONG_RUN}/resume")
        stack.wait_for_leases(workers)
        with _probe(stack, waits_ms.setdefault(f"{workers:,} workers work", [])):
            time.sleep(plan.choose(15, 3))
        with _probe(stack, waits_ms.setdefault("they are found dead", [])):
            stack.end_workers()
            stack.wait_for_leases(0)
        memory_mb, where = read_memory_mb(stack.api.pid), ("--coordinator", stack.api.url, "--token", TOKEN)
        for command in (("runs",), ("show", LONG_RUN)):
            began = time.monotonic()
            subprocess.run([*OKU, *command, *where], check=True, capture_output=True, timeout=_LIMIT_S)
            commands_s[f"`oku {command[0]}`"] = time.monotonic() - began
    rows = [
        (name, *(f"{sorted(ms)[find_rank(each, len(ms)) - 1]:.1f} ms" for each in (0.5, 0.99, 1.0)))
        for name, ms in waits_ms.items()
    ]
    label, longest_s = f"{runs + 1:,} runs and {leases:,} leases", max(commands_s.values())
    measured = [
        (f"ledger of {label}", f"{ledger_mb:.0f} MB"),
        ("coordinator, from its start to `/readyz`", f"{ready_s:.2f} s"),
        ("coordinator, memory", f"{memory_mb:.0f} MB"),
        *((name, f"{took_s:.2f} s") for name, took_s in commands_s.items()),
    ]
    for row in (*rows, *measured):
        log(f"  {', '.join(row)}")
    limits = (
        ("coordinator under 250 MB", memory_mb, 250),
        ("ready in 3 s", ready_s, 3),
        ("commands in 1 s", longest_s, 1),
    )
    goals = [
        Goal(f"{label}: {text}", f"{value:.2f}", value <= most, is_exact=most == 250)
        for text, value, most in limits
    ]
    tables = [
        Table(("`/healthz` while", "median", "p99", "longest"), rows),
        Table(("", "measured"), measured),
    ]
    return Report(tables=tables, goals=goals)


@contextmanager
def _probe(stack: SimulatedStack, took_ms: list[float]) -> Iterator[None]:
    """Ask `/healthz` all the time for as long as the block lasts; how many ms each answer took."""
    ending = Event()

    def ask() -> None:
        while not ending.wait(0.005):
            began = time.perf_counter()
            urllib.request.urlopen(f"{stack.api.url}/healthz").read()
            took_ms.append(1000 * (time.perf_counter() - began))

    thread = Thread(target=ask, name="probe", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
