"""How much memory this process has, and has had at most; MB are 10**6 bytes."""

import resource
import sys
from pathlib import Path

STATM = Path("/proc/self/statm")
STATUS = Path("/proc/self/status")
_PAGE_MB = resource.getpagesize() / 1e6
_MAXRSS_MB = 1e-6 if sys.platform == "darwin" else 1e-6 * 1024


def measure_rss_mb() -> float:
    """Resident memory now, in MB; the peak where the system does not tell."""
    try:
        return int(STATM.read_text().split()[1]) * _PAGE_MB
    except OSError:
        return measure_peak_rss_mb()


def measure_peak_rss_mb() -> float:
    """Largest resident memory so far, in MB."""
    try:
        # Not from getrusage on Linux: what that says is handed on from the parent process over exec.
        kilobytes = STATUS.read_text().partition("VmHWM:")[2].split(maxsplit=1)[0]
        return int(kilobytes) * 1024 / 1e6
    except (OSError, IndexError):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_MB
