"""Says how a run can be resumed whose data folder may go with the container that it ran in.

The image sets `OKU_IN_CONTAINER`. What a process does not write to a volume is removed with its container.
"""

import os
import re
from pathlib import Path

VARIABLE = "OKU_IN_CONTAINER"
_MOUNTS = Path("/proc/self/mountinfo")
"""One line for each mount; its name may have any bytes; see proc(5).

A volume may be of the same device as the root file system."""
_MOUNT_POINT = 4
_ROOT = Path("/")


def describe_resume(command: str, folder: Path) -> str:
    """Say how to resume a run whose ledger is in `folder`, and where."""
    hint = f"resume it with: {command}"
    if VARIABLE not in os.environ:
        return hint
    volume = find_volume(folder)
    if volume is None:
        return "its data goes with this container; to keep runs: docker run -v oku:/data"
    return f"{hint} (same volume at {volume})"


def find_volume(folder: Path) -> Path | None:
    """Return where the file system of `folder` is mounted; None if it is that of the container."""
    lines = os.fsdecode(_MOUNTS.read_bytes()).strip("\n").split("\n")
    points = (line.split(" ")[_MOUNT_POINT] for line in lines)
    mounted = {Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point)) for point in points}
    absolute = folder.absolute()
    mount = next(path for path in (absolute, *absolute.parents) if path in mounted | {_ROOT})
    return None if mount == _ROOT else mount
