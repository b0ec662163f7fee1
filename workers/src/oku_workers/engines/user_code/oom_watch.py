"""Watches whether the kernel has lately killed a process for lack of memory.

The counter of the worker's control group, which is the container in a pod, counts the processes killed in it;
without control groups, the counter of the machine counts all. Neither names a process: if the count has just
risen, a `SIGKILL` was the kernel's.
"""

import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from oku_core.process.clock import Clock
from oku_core.process.resources import MOUNT, ROOT, list_control_groups

_KEPT_S = 5.0
"""A process with much memory takes its time to end after it was killed."""
_COUNT = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


class OomWatch:
    """Watches the count of kills from its creation on."""

    def __init__(self, root: Path = ROOT, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._file, count = _find_counter(root)
        self._counts = deque([(clock(), count)])
        """The counts of the last seconds; the first is older."""

    def poll(self) -> None:
        """Read the counter; call this several times a second."""
        if self._file is None:
            return
        now = self._clock()
        self._counts.append((now, _read_count(self._file) or 0))
        while len(self._counts) > 1 and self._counts[1][0] < now - _KEPT_S:
            self._counts.popleft()

    def has_risen(self) -> bool:
        """Whether a process was killed in the last seconds."""
        self.poll()
        return self._counts[-1][1] > self._counts[0][1]


def _find_counter(root: Path) -> tuple[Path | None, int]:
    """The first file that has the count, and the count."""
    for file in _list_counters(root):
        if (count := _read_count(file)) is not None:
            return file, count
    return None, 0


def _list_counters(root: Path) -> Iterator[Path]:
    """The files that may have the count, the most specific first."""
    mount = root / MOUNT
    for controllers, path in list_control_groups(root):
        # In a container its own group may be mounted at the top, although its path differs outside.
        for place in (path, ""):
            if not controllers:
                yield mount / place / "memory.events"
                yield mount / "unified" / place / "memory.events"
            elif "memory" in controllers:
                yield mount / "memory" / place / "memory.oom_control"
    yield root / "proc/vmstat"


def _read_count(file: Path) -> int | None:
    try:
        found = _COUNT.search(file.read_bytes())
    except OSError:
        return None
    return None if found is None else int(found[1])
