"""The health of the ledger's file: the last fault of SQLite, and whether there is space left.

A fault passes by itself. Every caller that meets it retries, so nothing here needs a reset: the next change
that reaches the disk ends the fault.
"""

import enum
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from oku_core.process.clock import Clock

LEAST_FREE_BYTES = 1 << 20
"""With less space the disk counts as full: small changes may still succeed, but the next large one fails."""
STEADY_S = 3.0
"""The shortest time of a fault: on a full disk, a small change may succeed between two failures."""
_PRIMARY = 0xFF
"""The bits of the primary result code in an extended one (sqlite.org/rescode.html)."""


class StorageFault(enum.StrEnum):
    """Why the file cannot be used."""

    DISK_FULL = "disk_full"
    IO_ERROR = "io_error"
    READ_ONLY = "read_only"
    NOT_OPENED = "not_opened"
    LOCKED = "locked"


_FAULTS = {
    sqlite3.SQLITE_FULL: StorageFault.DISK_FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: StorageFault.DISK_FULL,  # there is no space for the index of the log
    sqlite3.SQLITE_IOERR: StorageFault.IO_ERROR,
    sqlite3.SQLITE_READONLY: StorageFault.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: StorageFault.NOT_OPENED,
    sqlite3.SQLITE_PERM: StorageFault.NOT_OPENED,
    sqlite3.SQLITE_BUSY: StorageFault.LOCKED,
    sqlite3.SQLITE_LOCKED: StorageFault.LOCKED,
    sqlite3.SQLITE_PROTOCOL: StorageFault.LOCKED,
}
_TEXTS = {
    StorageFault.DISK_FULL: "its disk is full",
    StorageFault.IO_ERROR: "its disk reports an error",
    StorageFault.READ_ONLY: "it may not be written, or its file system is read-only",
    StorageFault.NOT_OPENED: "its files cannot be opened",
    StorageFault.LOCKED: "another process has locked it",
}


class Space(NamedTuple):
    """The space of a file system.

    Attributes:
        free_bytes: how much this process may still write.
        size_bytes: its size.
    """

    free_bytes: int
    size_bytes: int


class StorageError(sqlite3.OperationalError):
    """The file cannot be used now; nothing was changed.

    Args:
        fault: the reason.
        message: SQLite's own message.
    """

    def __init__(self, fault: StorageFault, message: str) -> None:
        super().__init__(f"{_TEXTS[fault]} (SQLite: {message})")
        self.fault = fault


class StorageHealth:
    """The health of one ledger's file. Any thread may use it.

    Args:
        count: called with each fault.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        count: Callable[[StorageFault], None] = lambda _: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._count = count
        self._clock = clock
        self._trouble = ""
        self._failed_at = 0.0
        self._is_short = False
        self.written_at = clock()
        """When a change last reached the disk, in monotonic seconds."""

    @property
    def trouble(self) -> str:
        """Why the ledger cannot be used, in a few words; empty if it can."""
        return self._trouble or (_TEXTS[StorageFault.DISK_FULL] if self._is_short else "")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record a fault of the file, and raise it as `StorageError`; other errors pass unchanged."""
        try:
            yield
        except sqlite3.OperationalError as error:
            self.raise_fault(error)
            raise

    def raise_fault(self, error: sqlite3.OperationalError) -> None:
        """Record a fault of the file and raise it as `StorageError`; do nothing on another error."""
        if (explained := find_storage_error(error)) is not None:
            self._record_failure(explained)
            raise explained from error

    def record_write(self) -> None:
        """Record that a change has reached the disk."""
        self.written_at = now = self._clock()
        if self._trouble and now - self._failed_at >= STEADY_S:
            self._trouble = ""

    def record_space(self, space: Space | None) -> None:
        """Record the free space for the file; None if unknown."""
        is_short = space is not None and space.free_bytes < LEAST_FREE_BYTES
        if is_short and not self.trouble:
            self._count(StorageFault.DISK_FULL)
        self._is_short = is_short

    def _record_failure(self, error: StorageError) -> None:
        self._failed_at = self._clock()
        self._trouble = str(error)
        self._count(error.fault)


def find_storage_error(error: sqlite3.OperationalError) -> StorageError | None:
    """The fault of the file behind an error; None for other errors, such as wrong SQL."""
    if isinstance(error, StorageError):
        return error
    code: int | None = getattr(error, "sqlite_errorcode", None)  # only SQLite's own errors have one
    fault = None if code is None else _FAULTS.get(code) or _FAULTS.get(code & _PRIMARY)
    return None if fault is None else StorageError(fault, str(error))


def measure_space(path: Path) -> Space | None:
    """The space of the file system of a path; None if unknown."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    if not found.f_blocks:
        return None
    free = found.f_bavail if os.geteuid() else found.f_bfree
    return Space(found.f_frsize * free, found.f_frsize * found.f_blocks)
