"""Names the kernel whose monotonic clock this process reads: processes that agree share that clock exactly.

It is the same in all containers of a machine, unless one is in a time namespace of its own
(time_namespaces(7)), and another after each boot.
"""

import subprocess
import sys
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")
_DARWIN_BOOT_ID = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def fetch_kernel_id() -> str:
    """The id of this boot of this kernel, with the time namespace; empty if the system does not say."""
    boot = fetch_boot_id()
    try:
        namespace = _TIME_NAMESPACE.readlink() if _TIME_NAMESPACE.is_symlink() else ""
    except OSError:
        return ""
    return f"{boot} {namespace}".strip() if boot else ""


def fetch_boot_id() -> str:
    """The id of this boot of this machine; empty if the system does not say."""
    try:
        if sys.platform == "darwin":
            return subprocess.check_output(_DARWIN_BOOT_ID, text=True).strip()  # noqa: S603  # of the system
        return _BOOT_ID.read_text().strip()
    except (OSError, subprocess.SubprocessError):
        return ""
