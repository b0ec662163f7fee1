"""What this process uses and may use: memory, processor time and open files, within its control groups.

1 MB is 10**6 bytes. Control groups (cgroups(7)) bound and count a process together with its neighbours.
"""

import logging
import os
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
_OWN, MOUNT = "proc/self/cgroup", "sys/fs/cgroup"


class ControlGroup(NamedTuple):
    """A control group of this process.

    Attributes:
        controllers: what it controls, such as `memory`; empty for the only group of version 2.
        path: where it is below the mount of its hierarchy. A container may see the group at the top instead.
    """

    controllers: frozenset[str]
    path: str


def list_control_groups(root: Path = ROOT) -> list[ControlGroup]:
    """The control groups of this process; none if the system has none."""
    try:
        content = (root / _OWN).read_bytes()
    except OSError:
        return []
    groups = []
    for line in os.fsdecode(content).split("\n"):  # number:controllers:path, in any bytes
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            groups.append(ControlGroup(frozenset(filter(None, controllers.split(","))), path.lstrip("/")))
    return groups


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


_SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Nanoseconds on a processor, nanoseconds waiting for one, turns (Linux, scheduler/sched-stats)."""


def measure_busy_s(schedstat: Path = _SCHEDSTAT) -> float:
    """Time that this process ran on a processor, or the calling thread waited for one, in seconds.

    A process whose work queues because others take the processors is as saturated as one that uses up its
    own. On systems that do not report how long a thread waited, waiting counts as nothing.
    """
    try:
        waited_s = int(schedstat.read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        waited_s = 0.0
    return time.process_time() + waited_s


_log = logging.getLogger(__name__)

MOST = 1 << 20
"""The highest limit that is requested; a system without a limit counts as allowing this many."""


def read_open_files() -> int:
    """How many files this process may have open now: the soft limit."""
    return _bound(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_open_files() -> int:
    """Raise the soft limit, which is 1024 on most systems, as far as allowed, and return the new one.

    Child processes inherit it. The limit is never lowered. Some systems allow less than their hard limit:
    a refusal is logged, and half of the refused limit is tried next.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    present, wanted = _bound(soft), _bound(hard)
    while wanted > present:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError) as error:
            _log.warning("a limit of %d open files is refused: %s", wanted, error)
            wanted //= 2
        else:
            return wanted
    return present


def _bound(limit: int) -> int:
    return MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)
