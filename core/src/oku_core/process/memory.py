"""The resident memory of this process, now and at its peak; 1 MB is 10**6 bytes."""

import resource
import sys
from pathlib import Path

STATM = Path("/proc/self/statm")
STATUS = Path("/proc/self/status")
_PAGE_MB = resource.getpagesize() / 1e6
_MAXRSS_MB = 1e-6 if sys.platform == "darwin" else 1e-6 * 1024


def measure_rss_mb() -> float:
    """The current resident memory in MB; the peak where the system does not report the current value."""
    try:
        return int(STATM.read_text().split()[1]) * _PAGE_MB
    except OSError:
        return measure_peak_rss_mb()


def measure_peak_rss_mb() -> float:
    """The peak resident memory in MB."""
    try:
        # On Linux, getrusage would include the peak of the parent process, which survives exec.
        kilobytes = STATUS.read_text(errors="replace").partition("VmHWM:")[2].split(maxsplit=1)[0]
        return int(kilobytes) * 1024 / 1e6
    except (OSError, IndexError):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_MB
