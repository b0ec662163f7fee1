"""How busy this process is."""

import time
from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Nanoseconds on a processor, nanoseconds waiting for one, turns (Linux, scheduler/sched-stats)."""


def measure_busy_s(schedstat: Path = _SCHEDSTAT) -> float:
    """Time that this process ran on a processor, or the calling thread waited for one, in seconds.

    A process whose work queues because others take the processors is as saturated as one that uses up its
    own. On systems that do not tell how long a thread waited, waiting counts as nothing.
    """
    try:
        waited_s = int(schedstat.read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        waited_s = 0.0
    return time.process_time() + waited_s
