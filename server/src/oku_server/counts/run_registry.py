"""The registry of announced runs: the runs whose counts are kept.

Any client can name a run in a request, so a table of every name ever seen would grow without end. Names
without an announcement therefore share a fixed number of rows in each process (`count_table`). A coordinator
announces its run before the first request; such a run has its own place in every process, and requests cannot
take it away. The registry is a block of memory that all processes of a store share, or a mapped file.

Layout, in machine words: magic, number of changes so far, then rows. A row holds the run (40 bytes of ASCII,
padded with NUL), its stamp and the time of its last announcement, both in ns of Unix time. The stamp is the
time of its first announcement; a row without a stamp is empty or being written. Writers hold a lock; readers
need none.
"""

import fcntl
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

MAX_RUN_BYTES = 40
PLACES = 1023
KEPT_S = 3600.0
"""How long an announcement secures the place of a run; a coordinator repeats it every few seconds."""

_MAGIC = b"okuruns1"
_ROW = struct.Struct(f"={MAX_RUN_BYTES}sQQ")
_ROW_WORDS = _ROW.size // 8
_HEADER_BYTES = 16
_CHANGES_WORD = 1
_ANNOUNCED_WORD = _HEADER_BYTES // 8 + _ROW_WORDS - 1
"""The word of the first row that holds the time of its last announcement."""

REGISTRY_BYTES = _HEADER_BYTES + PLACES * _ROW.size
EMPTY_REGISTRY = _MAGIC.ljust(REGISTRY_BYTES, b"\0")


class AnnouncedRun(NamedTuple):
    """The place of a run, and the stamp that distinguishes it from earlier runs in that place."""

    place: int
    stamp: int


class RunRegistry:
    """The announced runs of a store.

    Args:
        block: a block that was `EMPTY_REGISTRY` when it was new.
        lock_file: the descriptor of a file that every process has open; it is locked for each change.
    """

    def __init__(self, block: mmap.mmap | bytearray, lock_file: int) -> None:
        self._bytes = memoryview(block)
        self._words = self._bytes.cast("B").cast("Q")
        self._lock_file = lock_file
        self._entry_by_name: dict[bytes, AnnouncedRun] = {}
        self._known_changes = 0

    def find(self, run: str) -> AnnouncedRun | None:
        """The entry of a run; None if it was not announced or has lost its place."""
        changes = self._words[_CHANGES_WORD]
        if changes != self._known_changes:
            rows = enumerate(_ROW.iter_unpack(self._bytes[_HEADER_BYTES:]))
            self._entry_by_name = {
                name: AnnouncedRun(place, stamp) for place, (name, stamp, _) in rows if stamp
            }
            self._known_changes = changes
        return self._entry_by_name.get(_encode(run))

    def announce(self, run: str, now: float) -> bool:
        """Give a run a place, or renew the one it has; False if recently announced runs hold every place.

        Args:
            run: its name, which must fit a row; the empty name is not a run and never gets a place.
            now: Unix time.
        """
        if not run:
            return False
        with self._lock():
            now_ns = int(now * 1e9)
            if entry := self.find(run):
                self._words[_ANNOUNCED_WORD + entry.place * _ROW_WORDS] = now_ns
                return True
            announced = self._words[_ANNOUNCED_WORD::_ROW_WORDS].tolist()
            oldest_ns = min(announced)
            if oldest_ns and now - oldest_ns / 1e9 < KEPT_S:
                return False
            self._write(announced.index(oldest_ns), _encode(run), now_ns)
            return True

    def _write(self, place: int, name: bytes, now_ns: int) -> None:
        start = _HEADER_BYTES + place * _ROW.size
        former = bytes(self._bytes[start : start + MAX_RUN_BYTES])
        self._bytes[start : start + _ROW.size] = bytes(_ROW.size)
        self._bytes[start : start + _ROW.size] = _ROW.pack(name, now_ns, now_ns)
        self._entry_by_name.pop(former, None)
        self._entry_by_name[name] = AnnouncedRun(place, now_ns)
        # A process that read the rows during the write sees this change and reads them again.
        self._words[_CHANGES_WORD] += 1
        self._known_changes += 1

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # `lockf` locks for the process; `flock` would lock for the open file, which forked processes share.
        fcntl.lockf(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN)


def is_registry(block: bytes) -> bool:
    """Whether `block` is a registry."""
    return len(block) == REGISTRY_BYTES and block.startswith(_MAGIC)


def _encode(run: str) -> bytes:
    return run.encode("ascii", "replace").ljust(MAX_RUN_BYTES, b"\0")
