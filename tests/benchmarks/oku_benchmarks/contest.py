"""Load generators take turns at one target, with as many connections and for the same time.

The target counts requests, and the rate is that between 20 % and 90 % of a turn's own requests, without
starting up and winding down. Processor time is that of the client in the same window: of Oku's worker with
everything below it, of another's process with its children.
"""

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import msgspec

from oku_benchmarks.install import find_program, list_missing
from oku_benchmarks.processes import Count, Look, Observer, cut_window
from oku_benchmarks.report import NONE, Goal, Spread, Table, build_ratios, build_spread, log
from oku_benchmarks.targets import Target
from oku_cli.backends.data_dir import DataDir
from oku_cli.process.child import Child
from oku_core.summary.summary import Summary
from oku_server.counts.count_store import read_served

WORKER = "worker-1"
_CLIENT, _TARGET = "client", "target"
_TURN_LIMIT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class OkuRun:
    """A run of `oku run` that completed."""

    looks: Sequence[Look]
    summary: Summary
    leases: int


class OwnServers:
    """The delay servers that `oku run` brings, which count under a random name that the ledger knows."""

    def __init__(self, data: Path) -> None:
        self._data = DataDir(data)
        self._name = ""

    def read_served(self) -> int:
        """How many requests of the run they have received; 0 before there is a run."""
        if not self._name and self._data.ledger.exists():
            self._name = _query(self._data.ledger, "SELECT max(count_name) FROM runs") or ""
        if not self._name:
            return 0
        folders = {path.parent for path in self._data.counts.rglob("served-*.bin")}
        return sum(read_served(folder, self._name) for folder in folders)


@dataclass(frozen=True, kw_only=True)
class OkuOptions:
    """How a run is watched."""

    count: Count | None = None
    beside: Mapping[str, int] = field(default_factory=dict)
    timeout_s: float = _TURN_LIMIT_S
    look_s: float = 0.05
    act: Callable[[Look, Mapping[str, int]], None] | None = None
    python: str = sys.executable


_USUAL = OkuOptions()


def run_oku(folder: Path, flags: Sequence[str], options: OkuOptions = _USUAL) -> OkuRun:
    """Run `oku run` with its whole stack in a new data folder; `BenchmarkError` unless it completes."""
    data = Path(tempfile.mkdtemp(dir=folder, prefix="oku-"))
    account, log_file = folder / f"{data.name}.json", folder / f"{data.name}.log"
    command = [options.python, "-m", "oku_cli", "run", *flags, "--quiet", "--data-dir", str(data)]
    child = Child("oku", [*command, "--summary-json", str(account)], log_file, os.environ)
    observer = Observer(
        options.count or OwnServers(data).read_served,
        lambda: {**_find_pids(data), **options.beside},
        options.look_s,
    )
    act = options.act
    child.start()
    try:
        looks = observer.follow(
            child, options.timeout_s, (lambda look: act(look, _find_pids(data))) if act else None
        )
    finally:
        child.kill()  # the stack dies with it
        child.wait(10.0)
    summary = msgspec.json.decode(account.read_bytes(), type=Summary)
    leases = int(_query(data / "ledger.sqlite3", "SELECT count(*) FROM leases") or 0)
    shutil.rmtree(data, ignore_errors=True)
    return OkuRun(looks=looks, summary=summary, leases=leases)


def _find_pids(data: Path) -> dict[str, int]:
    """The processes of the stack that runs in a data folder, by name."""
    try:
        document = json.loads((data / "stack.json").read_bytes())
    except FileNotFoundError:
        return {}
    return {"oku": document["pid"], **document["children"]}


def _query(ledger: Path, sql: str) -> str | None:
    """The only value of a query; None if the ledger has no such table yet."""
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
            (value,) = database.execute(sql).fetchone()
            return None if value is None else str(value)
    except sqlite3.OperationalError:
        return None


@dataclass(frozen=True, kw_only=True)
class Effort:
    """One turn: both its time and the requests that fit into it are given, each takes what it understands."""

    url: str
    connections: int
    seconds: int
    requests: int
    folder: Path
    streams: int = 1

    @property
    def fixed_url(self) -> str:
        """The URL of one index."""
        return self.url.format(i=1)

    @property
    def base(self) -> str:
        """The URL without its path."""
        return self.url.partition("{i}")[0].rstrip("/")


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A load generator; `build` makes its command, or of Oku the flags of `oku run`.

    One with a `program` needs it, one with a `package` needs that in this Python. One that `counts` sends a
    number of requests, not as many as the time allows; `steps` are the requests of an iteration.
    """

    build: Callable[[str, Effort], Sequence[str]]
    is_oku: bool = False
    python: str = sys.executable
    program: str = ""
    package: str = ""
    counts: bool = False
    steps: int = 1
    expected_rps: float = 2_000.0

    def find(self) -> str | None:
        """The path of its program; None when it is missing."""
        if self.program:
            return find_program(self.program)
        is_there = not self.package or find_spec(self.package) is not None
        return sys.executable if is_there else None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a turn came to; all shares are of one core."""

    rate: float
    cpu_us: float
    cpu_share: float
    target_share: float
    sent: int
    wanted: int


@dataclass(kw_only=True)
class Contest:
    """Turns of contestants at one target."""

    target: Target
    folder: Path
    contestants: Mapping[str, Contestant]
    seconds: int
    connections: int = 100
    streams: int = 1
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    @property
    def goals(self) -> list[Goal]:
        """That each request of those that count reached the target once."""
        goals, text = [], "the target receives each request once"
        for name, turns in self.turns.items():
            sent, wanted = (sum(getattr(turn, figure) for turn in turns) for figure in ("sent", "wanted"))
            is_met, contestant = all(turn.sent == turn.wanted for turn in turns), self.contestants[name]
            if contestant.is_oku or contestant.counts:
                goals.append(Goal(f"{name}: {text}", f"{sent:,} of {wanted:,}", is_met, contestant.is_oku))
        return goals

    def hold_round(self, number: int) -> None:
        """One turn of each contestant; the order changes from round to round."""
        names = [name for name, each in self.contestants.items() if each.find()]
        for name in names if number % 2 == 0 else reversed(names):
            turn = self._play(name, self.contestants[name])
            self.turns.setdefault(name, []).append(turn)
            log(f"  {name}: {turn.rate:,.0f}/s, {turn.cpu_us:.1f} µs of processor time each")

    def build_effort(self, requests: int) -> Effort:
        """What a contestant is asked for in its next turn."""
        return Effort(
            url=self.target.url,
            connections=self.connections,
            seconds=self.seconds,
            requests=requests,
            folder=self.folder,
            streams=self.streams,
        )

    def list_missing(self) -> list[str]:
        """A note for the contestants that are not there."""
        return list_missing(
            each.program or each.package for each in self.contestants.values() if not each.find()
        )

    def list_figures(self, name: str, figure: str) -> list[float]:
        """One figure of a contestant, round by round."""
        return [float(getattr(turn, figure)) for turn in self.turns[name]]

    def compare(self, one: str, other: str, figure: str) -> Spread:
        """The ratio of a figure of one contestant to that of another."""
        return build_ratios(self.list_figures(one, figure), self.list_figures(other, figure))

    def build_rows(self, first: str, label: str = "") -> list[list[str]]:
        """A row for each contestant, with the ratio of the first one to it."""
        return [
            [
                f"{label}{name}",
                self._format(name, "rate", ",.0f"),
                NONE if name == first else self.compare(first, name, "rate").format(".2f"),
                self._format(name, "cpu_us", ",.1f"),
                NONE if name == first else self.compare(first, name, "cpu_us").format(".2f"),
                self._format(name, "cpu_share", ".2f"),
                self._format(name, "target_share", ".2f"),
            ]
            for name in self.turns
        ]

    def _format(self, name: str, figure: str, pattern: str) -> str:
        return build_spread(self.list_figures(name, figure)).format(pattern)

    def _play(self, name: str, contestant: Contestant) -> Turn:
        past = self.turns.get(name)
        rate = past[-1].rate if past else contestant.expected_rps
        effort = self.build_effort(max(200, int(rate * self.seconds)))
        program = contestant.find()
        assert program is not None
        command = contestant.build(program, effort)
        if contestant.is_oku:
            beside = {_TARGET: self.target.pid}
            options = OkuOptions(count=self.target.read_served, beside=beside, python=contestant.python)
            looks, process = run_oku(self.folder, command, options).looks, WORKER
        else:
            looks, process = self._play_other(command), _CLIENT
        window = cut_window(looks)
        iterations, cpu_s = window.sent / contestant.steps, window.measure_cpu_s(process)
        return Turn(
            rate=iterations / window.length_s,
            cpu_us=cpu_s / iterations * 1e6,
            cpu_share=cpu_s / window.length_s,
            target_share=window.measure_share(_TARGET),
            sent=looks[-1].sent,
            wanted=effort.requests * contestant.steps,
        )

    def _play_other(self, command: Sequence[str]) -> Sequence[Look]:
        child = Child(_CLIENT, command, self.folder / "client.log", os.environ)
        pids = {_TARGET: self.target.pid}
        observer = Observer(self.target.read_served, lambda: {_CLIENT: child.pid, **pids})
        child.start()
        try:
            return observer.follow(child, _TURN_LIMIT_S)
        finally:
            child.kill()
            child.wait(10.0)


def build_contest_table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """The table of one or several contests."""
    ratio = "the first's {} to this"
    head = (
        title,
        "rate",
        ratio.format("rate"),
        "µs of CPU each",
        ratio.format("µs"),
        "cores",
        "target's cores",
    )
    return Table(head, rows)
