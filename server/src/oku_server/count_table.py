"""The counts of one server process: requests received, by run, in a block of memory of fixed size.

The block may be shared with other processes or be the mapping of a file. One process adds to it; any process
reads it at any time, also when the one that added is dead: a count is one aligned 8-byte word, and a row has
the count 0 before it gets the name of a run.

Layout, in words of the machine: magic, rows taken so far, then rows of 40 bytes (the run, ASCII, filled up
with NUL) and a count. Row 0 is for requests that name no run.
"""

import logging
import mmap
import struct

NO_RUN = ""
"""Counts the requests whose header names no run, or none that fits a row."""
MAX_RUN_BYTES = 40
RUNS = 1023
"""Runs that a table holds; one more takes the place of the run that came first."""

_MAGIC = b"okucnt01"
_HEADER_BYTES = 16
_ROW = struct.Struct(f"={MAX_RUN_BYTES}sQ")
_TAKEN_WORD = 1

TABLE_BYTES = _HEADER_BYTES + (1 + RUNS) * _ROW.size
EMPTY_TABLE = _MAGIC.ljust(TABLE_BYTES, b"\0")

_log = logging.getLogger(__name__)


class CountTable:
    """The only writer of a block.

    Args:
        block: a block that started as `EMPTY_TABLE`; what it counted already stays.
    """

    def __init__(self, block: mmap.mmap | bytearray) -> None:
        self._bytes = memoryview(block)
        self._words = memoryview(block).cast("Q")
        rows = enumerate(_ROW.iter_unpack(self._bytes[_HEADER_BYTES:]))
        self._word_by_run = {_name(run): _count_word(row) for row, (run, _) in rows if row == 0 or run[0]}

    def add(self, run: str) -> None:
        """Count one request of `run`."""
        word = self._word_by_run.get(run)
        if word is None:
            word = self._take_row(run) if is_run(run) else self._word_by_run[NO_RUN]
        self._words[word] += 1

    def _take_row(self, run: str) -> int:
        taken = self._words[_TAKEN_WORD]
        row = 1 + taken % RUNS
        word = _count_word(row)
        start = _HEADER_BYTES + row * _ROW.size
        if forgotten := _name(bytes(self._bytes[start : start + MAX_RUN_BYTES])):
            del self._word_by_run[forgotten]
            if taken % RUNS == 0:
                _log.warning("%d runs are counted, each new one takes the place of the oldest", RUNS)
        self._words[_TAKEN_WORD] = taken + 1
        self._words[word] = 0
        self._bytes[start : start + MAX_RUN_BYTES] = run.encode().ljust(MAX_RUN_BYTES, b"\0")
        self._word_by_run[run] = word
        return word


def is_run(run: str) -> bool:
    """Whether `run` can have a row of its own: up to 40 printable ASCII characters."""
    return len(run) <= MAX_RUN_BYTES and run.isascii() and run.isprintable()


def is_table(block: bytes) -> bool:
    """Whether `block` is a table."""
    return len(block) == TABLE_BYTES and block.startswith(_MAGIC)


def read_count(block: bytes | bytearray | mmap.mmap, run: str) -> int:
    """The requests of `run` that a table counted."""
    name = run.encode().ljust(MAX_RUN_BYTES, b"\0")
    rows = enumerate(_ROW.iter_unpack(memoryview(block)[_HEADER_BYTES:]))
    return sum(count for row, (stored, count) in rows if stored == name and (run or row == 0))


def _name(stored: bytes) -> str:
    return stored.rstrip(b"\0").decode("ascii", "replace")


def _count_word(row: int) -> int:
    return (_HEADER_BYTES + (row + 1) * _ROW.size) // 8 - 1
