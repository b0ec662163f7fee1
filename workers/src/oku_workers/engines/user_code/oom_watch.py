"""Whether the kernel has lately killed a process for lack of memory, as its counters say.

Where there are control groups, those of the worker's own count what was killed in it, which is the container
of a pod; elsewhere what was killed on the machine. Neither names the process: a `SIGKILL` beside a count that
has just risen is the kernel's.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

_KEPT_S = 5.0
"""A process with much memory takes its time to end after it was killed."""
_COUNT = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


class OomWatch:
    """Watches the count of kills from its creation on.

    Args:
        root: of the file system.
        clock: monotonic seconds.
    """

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._file, count = _find_counter(root)
        self._counts = deque([(clock(), count)])
        """The count as it was for the last seconds, one that is older first."""

    def look(self) -> None:
        """Take note of the count; to be called some times a second."""
        if self._file is None:
            return
        now = self._clock()
        self._counts.append((now, _read_count(self._file) or 0))
        while len(self._counts) > 1 and self._counts[1][0] < now - _KEPT_S:
            self._counts.popleft()

    def has_risen(self) -> bool:
        """Whether a process was killed in the last seconds."""
        self.look()
        return self._counts[-1][1] > self._counts[0][1]


def _find_counter(root: Path) -> tuple[Path | None, int]:
    """The first file that has the count, and the count."""
    for file in _list_counters(root):
        if (count := _read_count(file)) is not None:
            return file, count
    return None, 0


def _list_counters(root: Path) -> Iterator[Path]:
    """The files that may have the count, the one that tells most first."""
    groups = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:  # number:controllers:path (cgroups(7))
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        # In a container its own group may be mounted at the top, under whatever path it has outside.
        for place in (path.lstrip("/"), ""):
            if not controllers:
                yield groups / place / "memory.events"
                yield groups / "unified" / place / "memory.events"
            elif "memory" in controllers.split(","):
                yield groups / "memory" / place / "memory.oom_control"
    yield root / "proc/vmstat"


def _read_count(file: Path) -> int | None:
    try:
        found = _COUNT.search(file.read_bytes())
    except OSError:
        return None
    return None if found is None else int(found[1])
