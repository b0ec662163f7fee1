"""Processor time and memory of a process, read from /proc. MB are 10**6 bytes, as everywhere in Oku."""

import os
from pathlib import Path
from typing import NamedTuple

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Vitals(NamedTuple):
    """Of one process, all its threads together."""

    cpu_s: float
    """Processor time since its start, in steps of 10 ms on most systems."""
    rss_mb: float
    """Resident memory now, shared pages included."""
    peak_rss_mb: float
    """The largest so far (VmHWM; the ru_maxrss of a process may be that of the one that started it)."""


def is_supported() -> bool:
    """Whether this system has a /proc to read."""
    return (_PROC / "self/stat").exists()


def read_vitals(pid: int) -> Vitals | None:
    """The vitals of a process; None when it is gone."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return None
    # The name in parentheses may hold anything; user and system time are the 12th and 13th field behind it.
    fields = stat.rpartition(")")[2].split()
    sizes_mb = {
        name: int(value.split()[0]) * 1024 / 1e6
        for name, _, value in (line.partition(":") for line in status.splitlines())
        if name in ("VmRSS", "VmHWM")
    }
    if len(sizes_mb) < 2:
        return None  # it has ended and waits to be reaped
    return Vitals(
        cpu_s=(int(fields[11]) + int(fields[12])) * _TICK_S,
        rss_mb=sizes_mb["VmRSS"],
        peak_rss_mb=sizes_mb["VmHWM"],
    )


def find_children(pid: int) -> list[int]:
    """The processes that a process has started and that live, by their ids; none when it is gone."""
    try:
        lists = [path.read_text() for path in (_PROC / str(pid) / "task").glob("*/children")]
    except OSError:
        return []
    return sorted(int(child) for text in lists for child in text.split())
