"""The disk of a coordinator: what survives a kill, a power cut, a failed fsync, and when there is no space.

The ledger writes real SQLite files, in memory. Each start of a coordinator gets a copy of what the one before
has left: after a kill all that it had written, after a power cut its write-ahead log cut off, or garbled, at
any place beyond what was synced.
"""

import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.simulation.machine.process import KilledError, Process

_connect = sqlite3.connect
_WAL_HEADER, _FRAME_HEADER = 32, 24
_CLOCK, _CLOCK_LASTS_SHARE = "clock.json", 0.5
"""The file with the coordinator's clock, and how often it survives that the power is cut."""


class DiskFault(StrEnum):
    """What can befall a statement."""

    FULL = "the disk is full"
    IO_ERROR = "the disk has an error"
    SYNC_FAILED = "fsync fails, and the commit is lost"
    SYNC_FAILED_WRITTEN = "fsync fails, but the commit is there"
    KILLED = "the coordinator is killed in the middle of a transaction"
    KILLED_BEFORE_COMMIT = "the coordinator is killed before a commit"
    KILLED_AFTER_COMMIT = "the coordinator is killed after a commit"
    TORN_COMMIT = "the power is cut while a commit is written"


_AT_COMMIT = frozenset(
    {
        DiskFault.SYNC_FAILED,
        DiskFault.SYNC_FAILED_WRITTEN,
        DiskFault.KILLED_BEFORE_COMMIT,
        DiskFault.KILLED_AFTER_COMMIT,
        DiskFault.TORN_COMMIT,
    }
)
_ERRORS = {
    DiskFault.FULL: "database or disk is full",
    DiskFault.IO_ERROR: "disk I/O error",
    DiskFault.SYNC_FAILED: "disk I/O error",
}


class Disk:
    """The disk that holds the ledger.

    Args:
        folder: a new folder of the real machine.
        chance: decides where a write-ahead log is cut.
        note: takes what happens, for the story.
        note_commit: called after each commit of a living coordinator.
    """

    def __init__(
        self,
        folder: Path,
        chance: random.Random,
        note: Callable[[str], None],
        note_commit: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._chance = chance
        self._note = note
        self._note_commit = note_commit
        self._boots = 0
        self._owner: Process | None = None
        self._connections: list[sqlite3.Connection] = []
        self._armed: DiskFault | None = None
        self._statements_left = 0
        self._log_at_cut: bytes | None = None
        self._loses_power = False
        self.is_full = False
        """Whether no statement that writes succeeds."""
        self.commits = 0
        self.path = folder / "0" / "ledger.sqlite3"

    def mount(self, owner: Process) -> Path:
        """Give a process that has just started what is left; returns where the ledger is."""
        before, self._boots = self.path.parent, self._boots + 1
        self.path = self._folder / str(self._boots) / "ledger.sqlite3"
        self.path.parent.mkdir(mode=0o700)
        for suffix in ("", "-wal"):
            source = before / f"ledger.sqlite3{suffix}"
            if source.exists():
                shutil.copy(source, self.path.with_name(source.name))
        has_clock = not self._loses_power or self._chance.random() < _CLOCK_LASTS_SHARE
        if (before / _CLOCK).exists() and has_clock:
            shutil.copy(before / _CLOCK, self.path.with_name(_CLOCK))
        self._tear()
        self.release()
        shutil.rmtree(before, ignore_errors=True)
        self._owner = owner
        self._armed = None
        return self.path

    def lose_power(self) -> None:
        """What was not synced may be gone, or garbled, when the disk is mounted again."""
        self._loses_power = True

    def arm(self, fault: DiskFault, statements: int) -> None:
        """Let a fault befall a statement after so many others; some befall the next commit then."""
        self._armed, self._statements_left = fault, statements

    def disarm(self) -> None:
        """No fault is to come, and there is space."""
        self._armed, self.is_full = None, False

    def release(self) -> None:
        """Close the files of a process that is dead."""
        for connection in self._connections:
            sqlite3.Connection.close(connection)
        self._connections.clear()

    def connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
        """Connect as `sqlite3.connect` does, to a file on this disk."""
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                if sql == "COMMIT":
                    return disk.commit(lambda: sqlite3.Connection.execute(self, sql))
                disk.pass_through(sql)
                return super().execute(sql, parameters)

            def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
                disk.pass_through(sql)
                return super().executemany(sql, parameters)

        named["check_same_thread"] = False
        connection = _connect(*arguments, **named, factory=Connection)
        self._connections.append(connection)
        return connection

    def pass_through(self, sql: str) -> None:
        """A statement is about to be executed."""
        self._stop_the_dead()
        if sql.startswith(("PRAGMA", "ROLLBACK", "SELECT", "BEGIN")):
            return
        if self.is_full and not sql.startswith("DELETE"):
            raise sqlite3.OperationalError(_ERRORS[DiskFault.FULL])
        self._statements_left -= 1
        fault = self._armed
        if fault is None or self._statements_left > 0 or fault in _AT_COMMIT:
            return
        self._strike(fault)

    def commit(self, work: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """A commit is about to be executed."""
        self._stop_the_dead()
        fault = self._armed if self._statements_left <= 0 else None
        if fault in (DiskFault.KILLED_BEFORE_COMMIT, DiskFault.SYNC_FAILED):
            self._strike(fault)
        if self.is_full:
            raise sqlite3.OperationalError(_ERRORS[DiskFault.FULL])
        log = self._log_path()
        before = log.read_bytes() if fault == DiskFault.TORN_COMMIT and log.exists() else b""
        image = self.path.read_bytes() if fault == DiskFault.TORN_COMMIT else b""
        cursor = work()
        self.commits += 1
        if fault == DiskFault.TORN_COMMIT and self.path.read_bytes() == image:
            self._log_at_cut = self._cut(before, log.read_bytes())
        if fault in _AT_COMMIT:
            self._strike(fault)
        self._note_commit()
        return cursor

    def _strike(self, fault: DiskFault) -> None:
        self._armed = None
        self._note(f"{fault}")
        if fault in _ERRORS or fault == DiskFault.SYNC_FAILED_WRITTEN:
            raise sqlite3.OperationalError(_ERRORS.get(fault, "disk I/O error"))
        assert self._owner is not None
        self._owner.kill()
        raise KilledError

    def _stop_the_dead(self) -> None:
        if self._owner is not None and not self._owner.is_alive:
            raise KilledError

    def _log_path(self) -> Path:
        return self.path.with_name("ledger.sqlite3-wal")

    def _cut(self, before: bytes, after: bytes) -> bytes:
        """A log that was written only in part: up to any place from where the two differ."""
        first = next(
            (at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new),
            min(len(before), len(after)),
        )
        at = self._chance.randint(first, len(after))
        return after[:at] + before[at:]

    def _tear(self) -> None:
        """Make the log of the new boot what a power cut has left of it."""
        log = self._log_path()
        if self._log_at_cut is not None:
            log.write_bytes(self._log_at_cut)
        elif self._loses_power and log.exists():
            content = log.read_bytes()
            synced = find_synced(content)
            at = self._chance.randint(synced, max(synced, len(content)))
            garbage = self._chance.randbytes(self._chance.choice((0, 0, 17, 4096, 9000)))
            log.write_bytes(content[:at] + garbage)
        self._log_at_cut, self._loses_power = None, False


def find_synced(log: bytes) -> int:
    """Where a write-ahead log ends, as of the last commit (https://sqlite.org/fileformat2.html#walformat)."""
    if len(log) < _WAL_HEADER:
        return len(log)
    page_size = struct.unpack(">I", log[8:12])[0]
    salts = log[16:24]
    synced = at = _WAL_HEADER
    while at + _FRAME_HEADER + page_size <= len(log) and log[at + 8 : at + 16] == salts:
        is_commit = struct.unpack(">I", log[at + 4 : at + 8])[0] != 0
        at += _FRAME_HEADER + page_size
        if is_commit:
            synced = at
    return synced
