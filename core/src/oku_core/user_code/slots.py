"""The slots of iterations, in memory that a worker shares with its host.

Each iteration that is handed out has a slot of 8 bytes: when it began, in nanoseconds of the monotonic clock
of the machine, or 0. The worker clears a slot before it hands it out; the host writes it when the iteration
begins. So a worker knows what a host that was killed had begun, and what it had not.
"""

import fcntl
import mmap
import os
import sys
import tempfile

MOST_SLOTS = 1 << 20
"""How many there may be; only pages that were written take memory."""
_BYTES = 8


class Slots:
    """The slots; each side has its own object of them, over the same memory.

    Args:
        file: the descriptor of the file that they stand in (`create_slots`); it may be closed afterwards.
    """

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, MOST_SLOTS * _BYTES)
        self._view = memoryview(self._memory).cast("q")

    def clear(self, slot: int) -> None:
        """Its iteration has not begun."""
        self._view[slot] = 0

    def start(self, slot: int, now_ns: int) -> None:
        """Its iteration begins now."""
        self._view[slot] = now_ns

    def begun_ns(self, slot: int) -> int:
        """When its iteration began; 0 if it has not."""
        return self._view[slot]

    def close(self) -> None:
        """Give the memory back."""
        self._view.release()
        self._memory.close()


def create_slots() -> int:
    """Make a file for slots that has no name; returns its descriptor.

    Writing to memory that its file has no room for ends a process, and so the worker. So the file is not on a
    disk that user code may fill, and cannot be made shorter.
    """
    if sys.platform == "linux":
        file = os.memfd_create("oku-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(file, MOST_SLOTS * _BYTES)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return file
    with tempfile.TemporaryFile(buffering=0) as file:
        file.truncate(MOST_SLOTS * _BYTES)
        return os.dup(file.fileno())
