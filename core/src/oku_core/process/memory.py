"""The resident memory of this process, now and at its peak, and its limit; 1 MB is 10**6 bytes."""

import os
import resource
import sys
from pathlib import Path

from oku_core.process.control_groups import MOUNT, ROOT, list_control_groups

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


def find_memory_limit(root: Path = ROOT) -> int:
    """How many bytes this process may use: what its control groups allow, or else the memory of the machine.

    A container has a control group; with version 1, only a process within the container sees its limit.

    Args:
        root: the root of the file system.
    """
    mount = root / MOUNT
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in (*_list_group_limits(root, mount), mount / "memory" / "memory.limit_in_bytes"):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # there is none, or it is `max`
            continue
    return min(limits)


def _list_group_limits(root: Path, mount: Path) -> list[Path]:
    """The files with the limits of the control group of this process and of those around it, of version 2."""
    own = next((group.path for group in list_control_groups(root) if not group.controllers), None)
    if own is None:
        return []
    folder = mount / own
    return [each / "memory.max" for each in (folder, *folder.parents) if each.is_relative_to(mount)]
