"""The counts of one server process: the requests received of each run, in a block of memory of fixed size.

The block may be shared with other processes or be a mapped file. One process adds to it; any process may read
it at any time, even after the writer has died: a count is one aligned 8-byte word, and a row's count is set
to 0 before the row gets the name of a run.

An announced run is counted in the place that it has in the `RunRegistry`. All other names share a fixed
number of rows, in which a new name replaces the oldest.

Layout, in machine words: magic, rows taken so far, names forgotten so far; then rows of a run (40 bytes of
ASCII, padded with NUL) and its count, where row 0 is for requests that name no run; then, for each place of
the registry, the stamp of its run and its count.
"""

import mmap
import struct

from oku_server.counts.run_registry import MAX_RUN_BYTES, PLACES, AnnouncedRun, RunRegistry

NO_RUN = ""
"""Counts the requests that name no run, or a run whose name does not fit a row."""
ROWS = 1023
"""How many runs without an announcement a table holds; one more replaces the oldest."""

_MAGIC = b"okucnt02"
_HEADER = struct.Struct("=8sQQ")
_ROW = struct.Struct(f"={MAX_RUN_BYTES}sQ")
_TAKEN_WORD, _FORGOTTEN_WORD = 1, 2
_PLACES_BYTE = _HEADER.size + (1 + ROWS) * _ROW.size
_PLACE = struct.Struct("=QQ")

TABLE_BYTES = _PLACES_BYTE + PLACES * _PLACE.size
EMPTY_TABLE = _MAGIC.ljust(TABLE_BYTES, b"\0")


class CountTable:
    """Counts requests in a block, as its only writer.

    Args:
        block: a block that was `EMPTY_TABLE` when it was new; the counts it already has stay.
        registry: the announced runs.
    """

    def __init__(self, block: mmap.mmap | bytearray, registry: RunRegistry) -> None:
        self._registry = registry
        self._bytes = memoryview(block)
        self._words = memoryview(block).cast("Q")
        rows = enumerate(_ROW.iter_unpack(self._bytes[_HEADER.size : _PLACES_BYTE]))
        self._word_by_run = {_name(run): _count_word(row) for row, (run, _) in rows if row == 0 or run[0]}
        self._run_by_place: dict[int, str] = {}

    def add(self, run: str) -> None:
        """Count one request of `run`."""
        word = self._word_by_run.get(run)
        if word is None:
            word = self._find_word(run)
        self._words[word] += 1

    def _find_word(self, run: str) -> int:
        if not is_run(run):
            return self._word_by_run[NO_RUN]
        entry = self._registry.find(run)
        word = self._take_row(run) if entry is None else self._take_place(run, entry)
        self._word_by_run[run] = word
        return word

    def _take_place(self, run: str, entry: AnnouncedRun) -> int:
        stamp_word = _stamp_word(entry.place)
        if self._words[stamp_word] != entry.stamp:
            self._words[stamp_word + 1] = 0
            self._words[stamp_word] = entry.stamp
        if former := self._run_by_place.get(entry.place):
            self._word_by_run.pop(former, None)
        self._run_by_place[entry.place] = run
        return stamp_word + 1

    def _take_row(self, run: str) -> int:
        taken = self._words[_TAKEN_WORD]
        row = 1 + taken % ROWS
        word = _count_word(row)
        start = _HEADER.size + row * _ROW.size
        if former := _name(bytes(self._bytes[start : start + MAX_RUN_BYTES])):
            del self._word_by_run[former]
            self._forget(former, self._words[word])
        self._words[_TAKEN_WORD] = taken + 1
        self._words[word] = 0
        self._bytes[start : start + MAX_RUN_BYTES] = run.encode().ljust(MAX_RUN_BYTES, b"\0")
        return word

    def _forget(self, run: str, count: int) -> None:
        """Take the row from a run; one announced after its first request takes the count to its place."""
        entry = self._registry.find(run)
        if entry is None:
            self._words[_FORGOTTEN_WORD] += 1
        else:
            self._word_by_run[run] = word = self._take_place(run, entry)
            self._words[word] += count


def is_run(run: str) -> bool:
    """Whether `run` can have a row of its own: up to 40 printable ASCII characters."""
    return len(run) <= MAX_RUN_BYTES and run.isascii() and run.isprintable()


def is_table(block: bytes) -> bool:
    """Whether `block` is a table."""
    return len(block) == TABLE_BYTES and block.startswith(_MAGIC)


def read_count(block: bytes | bytearray | mmap.mmap, run: str, entry: AnnouncedRun | None = None) -> int:
    """How many requests of `run` a table has counted; `entry` is the place of an announced run."""
    view = memoryview(block)
    name = run.encode().ljust(MAX_RUN_BYTES, b"\0")
    rows = enumerate(_ROW.iter_unpack(view[_HEADER.size : _PLACES_BYTE]))
    in_rows: int = sum(count for row, (stored, count) in rows if stored == name and (run or row == 0))
    if entry is None:
        return in_rows
    stamp, count = _PLACE.unpack_from(view, _PLACES_BYTE + entry.place * _PLACE.size)
    return in_rows + int(count) if stamp == entry.stamp else in_rows


def read_forgotten(block: bytes | bytearray | mmap.mmap) -> int:
    """How many names without an announcement have lost their rows, and with them their counts."""
    _, _, forgotten = _HEADER.unpack_from(block)
    return int(forgotten)


def _name(stored: bytes) -> str:
    return stored.rstrip(b"\0").decode("ascii", "replace")


def _count_word(row: int) -> int:
    return (_HEADER.size + (row + 1) * _ROW.size) // 8 - 1


def _stamp_word(place: int) -> int:
    return (_PLACES_BYTE + place * _PLACE.size) // 8
