"""The memory of this server's processes, as the operating system reports it, for the summaries of runs."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from oku_core.process.resources import measure_peak_rss_mb

_PROC = Path("/proc")
_FRESH_S = 1.0


class ProcessSize(TypedDict):
    """A process and its peak resident memory so far, in MB of 10**6 bytes."""

    pid: int
    peak_rss_mb: float


class RecentSizes:
    """The sizes of all processes that share the port, read at most once a second because anybody may ask."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._sizes: list[ProcessSize] = []
        self._stale_at = time.monotonic()

    def list(self) -> list[ProcessSize]:
        """The sizes of all processes, at most one second old."""
        if (now := time.monotonic()) >= self._stale_at:
            self._sizes, self._stale_at = list_sizes(self._processes), now + _FRESH_S
        return self._sizes


def list_sizes(processes: int) -> list[ProcessSize]:
    """The sizes of all processes that share the port, or of this one alone if the system shows no others.

    Args:
        processes: how many processes share the port; several are children of one parent.
    """
    sizes = sorted(_list_siblings(), key=lambda size: size["pid"]) if processes > 1 else []
    return sizes or [ProcessSize(pid=os.getpid(), peak_rss_mb=measure_peak_rss_mb())]


def _list_siblings() -> Iterator[ProcessSize]:
    parent = str(os.getppid())
    for status in _PROC.glob("[0-9]*/status"):
        try:
            # The names of processes may have any bytes.
            lines = status.read_text(encoding="utf-8", errors="replace").split("\n")
            fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        except OSError:
            continue  # the process has ended
        if fields.get("PPid") == parent and "VmHWM" in fields:
            yield ProcessSize(
                pid=int(fields["Pid"]), peak_rss_mb=int(fields["VmHWM"].split()[0]) * 1024 / 1e6
            )
