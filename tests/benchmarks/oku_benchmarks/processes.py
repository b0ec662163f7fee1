"""Processor time and memory of process trees, seen from outside, while requests are counted.

A worker is more than the process that was started under its name: that one is the zygote, which forks the
worker, and user code runs in a host below it. So every figure is that of a process with all its descendants.
MB are 10**6 bytes.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from oku_benchmarks.report import BenchmarkError
from oku_cli.process.child import Child

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_LOOK_S = 0.05
_MEMORY_S = 0.5  # between two looks at memory, which take the kernel a millisecond per process

Count = Callable[[], int]
"""Returns how many requests the target has received."""
Pids = Callable[[], Mapping[str, int]]
"""Returns the processes to look at, by name."""


class Vitals(NamedTuple):
    """Of a process tree: processor time so far, with that of descendants that have ended, and memory.

    Memory is the proportional set size: resident memory, in which a page that processes share counts once.
    """

    cpu_s: float
    memory_mb: float


def find_tree(pid: int, others: Collection[int] = ()) -> list[int]:
    """A process and its living descendants, without `others` and what these have started."""
    found = [pid]
    for each in found:
        for path in (_PROC / str(each) / "task").glob("*/children"):
            with suppress(OSError):
                found += [child for child in map(int, path.read_text().split()) if child not in others]
    return found


def read_cpu_s(pid: int, others: Collection[int] = ()) -> float:
    """Processor time of a process tree so far."""
    return sum(_read_cpu_s(each) for each in find_tree(pid, others))


def read_memory_mb(pid: int, others: Collection[int] = ()) -> float:
    """Memory of a process tree; 0 when it is gone."""
    return sum(_read_memory_mb(each) for each in find_tree(pid, others))


def _read_cpu_s(pid: int) -> float:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0
    # User and system time, and those of children that were waited for, are fields 14 to 17; the name, which
    # may contain anything, is the second.
    return sum(int(ticks) for ticks in stat.rpartition(")")[2].split()[11:15]) * _TICK_S


def _read_memory_mb(pid: int) -> float:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was seen at one moment."""

    at: float
    sent: int
    vitals: Mapping[str, Vitals]


@dataclass(frozen=True)
class Window:
    """The time between two looks."""

    begin: Look
    end: Look

    @property
    def length_s(self) -> float:
        """Its length."""
        return self.end.at - self.begin.at

    @property
    def sent(self) -> int:
        """Requests in it."""
        return self.end.sent - self.begin.sent

    @property
    def rate_rps(self) -> float:
        """Requests per second."""
        return self.sent / self.length_s

    @property
    def names(self) -> list[str]:
        """The process trees that were there all the time."""
        return sorted(self.begin.vitals.keys() & self.end.vitals.keys())

    def measure_cpu_s(self, name: str) -> float:
        """Processor time that a process tree used."""
        return self.end.vitals[name].cpu_s - self.begin.vitals[name].cpu_s

    def measure_share(self, name: str) -> float:
        """The same, of one core."""
        return self.measure_cpu_s(name) / self.length_s


@dataclass
class Observer:
    """Looks at process trees and at their target, and keeps what it sees."""

    count: Count
    find_pids: Pids
    look_s: float = _LOOK_S
    looks: list[Look] = field(default_factory=list)
    _memory_at: float = 0.0
    _before: int = -1

    def follow(
        self, child: Child, timeout_s: float, act: Callable[[Look], None] | None = None
    ) -> Sequence[Look]:
        """Look until a process has ended; `BenchmarkError` when it fails or takes too long."""
        deadline = time.monotonic() + timeout_s
        while (code := child.find_death()) is None:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{child.name} did not end within {timeout_s:.0f} s")
            look = self.look()
            if act is not None:
                act(look)
            time.sleep(self.look_s)
        if code != 0:
            raise BenchmarkError(f"{child.name} ended with {code}: {child.read_last_line()}")
        self.look()
        return self.looks

    def look(self) -> Look:
        """Look once."""
        count, at, pids = self.count(), time.monotonic(), self.find_pids()
        if self._before < 0:
            self._before = count
        has_memory = at >= self._memory_at + _MEMORY_S
        if has_memory:
            self._memory_at = at
        last = self.looks[-1].vitals if self.looks else {}
        vitals = {}
        for name, pid in pids.items():
            others = {other for other in pids.values() if other != pid}
            known = last[name].memory_mb if name in last else 0.0
            memory_mb = read_memory_mb(pid, others) if has_memory or not known else known
            if memory_mb:
                vitals[name] = Vitals(read_cpu_s(pid, others), memory_mb)
        look = Look(at=at, sent=count - self._before, vitals=vitals)
        self.looks.append(look)
        return look


def cut_window(looks: Sequence[Look], begin: float = 0.2, end: float = 0.9) -> Window:
    """The time between two shares of the requests, in which no process ends."""
    sent = looks[-1].sent
    first = next(look for look in looks if look.sent >= begin * sent)
    living = [look for look in looks if look.vitals.keys() >= first.vitals.keys()]
    last = next((look for look in living if look.sent >= end * sent), living[-1])
    if not first.vitals or last.sent <= first.sent:
        raise BenchmarkError(f"no window between {begin:.0%} and {end:.0%} of {sent:,} requests: too few")
    return Window(first, last)


def find_peak_mb(looks: Sequence[Look], name: str) -> float:
    """The largest memory of a process tree."""
    return max(look.vitals[name].memory_mb for look in looks if name in look.vitals)
