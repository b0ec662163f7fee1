"""The control groups of this process, which bound and count what it and its neighbours use (cgroups(7))."""

import os
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
    """The control groups of this process; none if the system has none.

    Args:
        root: the root of the file system.
    """
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
