"""A control group of the kernel with so much memory, in which a process can be started."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kit.requirement import miss

_GROUPS = Path("/sys/fs/cgroup")
_JOIN = 'echo $$ > "$0" && exec "$@"'
_EMPTY_WITHIN_S = 10.0


def _find_places() -> Iterator[tuple[Path, str]]:
    """Where a group can be made, and the name of the file with its limit (cgroups(7))."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield _GROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif not controllers:
            yield _GROUPS / path.lstrip("/"), "memory.max"
            yield _GROUPS, "memory.max"


@contextmanager
def memory_group(size: int) -> Iterator[Sequence[str]]:
    """Makes a group until the end of the block; gives what stands before a command that is started in it."""
    group = _make(size)
    try:
        yield ["sh", "-c", _JOIN, str(group / "cgroup.procs")]
    finally:
        deadline = time.monotonic() + _EMPTY_WITHIN_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # those in it are still ending
                group.rmdir()
                break
            time.sleep(0.05)


def _make(size: int) -> Path:
    for place, limit in _find_places():
        group = place / f"oku-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(size))
        except OSError:
            group.rmdir()
            continue
        return group
    return miss(
        "a limit of memory that the kernel keeps needs a control group of which this user may make another"
    )
