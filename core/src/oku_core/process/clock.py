"""Unix time that does not jump, and the name of the kernel whose monotonic clock this process reads.

When the clock of a machine is set, by hand or by NTP, `time.time()` jumps. A `SteadyClock` reads it once, and
the monotonic clock carries it on: the difference between two readings stays correct, and the timestamps of
one process stay in order. Processes that name the same kernel share their monotonic clock exactly.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

Clock = Callable[[], float]
"""Gives seconds: Unix time, of a monotonic clock, or of the processor."""
ClockNs = Callable[[], int]
"""Gives nanoseconds of such a clock."""

_NS_PER_S = 1_000_000_000
SMALLEST_STEP_S = 1.0
"""A smaller difference is not a step: NTP slews, and the two clocks are not read at the same instant."""


class SteadyClock:
    """The clock of one process. Several threads may read it.

    Args:
        wall: returns Unix time, which may jump.
        monotonic: returns seconds that never jump.
    """

    def __init__(
        self,
        wall: Clock = time.time,
        monotonic: Clock = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._set_offset(wall() - monotonic())
        self.wall_ahead_s = 0.0
        """How far the wall clock was ahead at the last `find_step`; negative if it was behind."""

    def now(self) -> float:
        """Unix time in seconds, as the wall clock would show it if it had never been set."""
        return self._monotonic() + self._offset_s

    @property
    def offset_ns(self) -> int:
        """Unix time minus the monotonic clock, in nanoseconds."""
        return self._offset_ns

    def adopt(self, offset_ns: int) -> None:
        """Go on with the clock of another process; by how much the wall clock differs counts as a step."""
        self._offset_ns = offset_ns
        self._offset_s = offset_ns / _NS_PER_S
        self.wall_ahead_s = 0.0

    def find_step(self) -> float | None:
        """By how many seconds the wall clock was set since the last call, negative if back; else None."""
        ahead_s = self._wall() - self.now()
        step_s = ahead_s - self.wall_ahead_s
        if abs(step_s) < SMALLEST_STEP_S:
            return None
        self.wall_ahead_s = ahead_s
        return step_s

    def anchor(self) -> None:
        """Adopt the current wall clock. Call this only while nothing is being measured."""
        self._set_offset(self._wall() - self._monotonic())
        self.wall_ahead_s = 0.0

    def _set_offset(self, offset_s: float) -> None:
        self._offset_s = offset_s
        self._offset_ns = round(offset_s * _NS_PER_S)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")
_DARWIN_BOOT_ID = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def fetch_kernel_id() -> str:
    """The id of this boot of this kernel, with the time namespace; empty if the system has none."""
    boot = fetch_boot_id()
    try:
        namespace = _TIME_NAMESPACE.readlink() if _TIME_NAMESPACE.is_symlink() else ""
    except OSError:
        return ""
    return f"{boot} {namespace}".strip() if boot else ""


def fetch_boot_id() -> str:
    """The id of this boot of this machine; empty if the system has none."""
    try:
        if sys.platform == "darwin":
            return subprocess.check_output(_DARWIN_BOOT_ID, text=True).strip()  # noqa: S603  # of the system
        return _BOOT_ID.read_text().strip()
    except (OSError, subprocess.SubprocessError):
        return ""
