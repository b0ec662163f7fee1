"""One pass over a file of data: its digest, rows and columns, and an index to find any row by.

A row index is a file of 8-byte numbers, the lowest byte first: the offsets of every 64th row, from row 0. A
scan takes as much memory for a large file as for a small one.
"""

import hashlib
import os
import re
import stat
import sys
from array import array
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from oku_core.data.csv_rows import BYTE_ORDER_MARK, CsvRows, find_rows_end, parse_columns, read_header
from oku_core.data.data_format import DataError, DataFormat, LineError, find_format
from oku_core.data.escape import CONTROL_CHARACTER
from oku_core.data.json_rows import JsonRows, find_lines_end, parse_lines, read_keys
from oku_core.errors import format_value

ROWS_OF_BLOCK = 64
"""How many rows lie between one offset of a row index and the next."""
OFFSET_BYTES = 8
LONGEST_ROW_BYTES = 1 << 20

_CHUNK_BYTES = 1 << 20
_MAYBE_CONTROL = re.compile(rb'[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f"\\]')
"""What a block has that has control characters in its values: them, quotes around line breaks, or escapes."""


class DataTable(NamedTuple):
    """The format and the columns of a file, read from its beginning.

    Attributes:
        format: how its rows are written.
        columns: their names, in the order of the file.
    """

    format: DataFormat
    columns: tuple[str, ...]


class Use(NamedTuple):
    """What requests use of each row.

    Attributes:
        columns: those that every row must have; in CSV, every row has all of them anyway.
        in_headers: those that stand in headers, so that they must not have control characters.
    """

    columns: frozenset[str] = frozenset()
    in_headers: frozenset[str] = frozenset()


NO_USE = Use()
"""For a file that is only looked at."""


class Scan(NamedTuple):
    """What a whole file is.

    Attributes:
        digest: the SHA-256 of the file, in hexadecimal.
        size: its bytes.
        rows: how many there are, the header not counted.
        index_digest: the SHA-256 of its row index.
    """

    digest: str
    size: int
    rows: int
    index_digest: str


def read_table(path: Path, name: str) -> DataTable:
    """Read the beginning of a file of data.

    Args:
        path: where it is.
        name: the user's name for it; its end is the format.

    Raises:
        DataError: it cannot be read, or its first line is wrong.
    """
    file_format = find_format(name)
    with _open(path, name) as file:
        return _read_table(_read_chunk(file, name), name, file_format)[0]


def scan(path: Path, name: str, index_path: Path, use: Use = NO_USE) -> Scan:
    """Read a file of data from end to end, and write its row index.

    Args:
        path: where it is.
        name: the user's name for it; its end is the format.
        index_path: where the row index goes; a file that is there is replaced.
        use: the columns that requests need in every row.

    Raises:
        DataError: it cannot be read, it changed meanwhile, or a line of it is wrong.
        OSError: the row index cannot be written.
    """
    file_format = find_format(name)
    with _open(path, name) as file, index_path.open("wb") as index:
        before = os.fstat(file.fileno())
        scanner = _Scanner(name, file_format, use, index)
        while chunk := _read_chunk(file, name):
            scanner.add(chunk)
        found = scanner.finish()
        _check_unchanged(path, name, before, os.fstat(file.fileno()), found.size)
    return found


class _Scanner:
    """The state of a scan between chunks."""

    def __init__(self, name: str, file_format: DataFormat, use: Use, index: BinaryIO) -> None:
        self._name: Final = name
        self._format: Final = file_format
        self._use: Final = use
        self._index: Final = index
        self._find_end: Final = find_rows_end if file_format is DataFormat.CSV else find_lines_end
        self._columns: tuple[str, ...] = ()
        self._rows: CsvRows | JsonRows | None = None
        self._digest, self._index_digest = hashlib.sha256(), hashlib.sha256()
        self._rest = b""
        self._line, self._offset, self._count = 1, 0, 0
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece of the file."""
        self._digest.update(chunk)
        self.size += len(chunk)
        if self._rows is None:
            chunk = self._begin(chunk)
        content = self._rest + chunk
        end = self._find_end(content)
        if content.endswith((b"\n\n", b"\n\r\n"), 0, end):
            # At the end of the file, blank lines are no rows; more than that may follow here.
            rows = content[:end].rstrip(b"\r\n")
            end = content.find(b"\n", len(rows)) + 1 if rows else 0
        self._rest = content[end:]
        self._take(content[:end])
        if len(self._rest) > LONGEST_ROW_BYTES:
            self._refuse_long(0)

    def finish(self) -> Scan:
        """The file has ended."""
        if self._rest.strip(b"\r\n"):
            if self._find_end(self._rest + b"\n") != len(self._rest) + 1:
                raise self._fault(0, "has a quotation mark that is not closed")
            self._take(self._rest + b"\n")
        if not self._count:
            raise DataError(f"{self._name}: has no rows")
        return Scan(self._digest.hexdigest(), self.size, self._count, self._index_digest.hexdigest())

    def _begin(self, chunk: bytes) -> bytes:
        table, begin = _read_table(chunk, self._name, self._format)
        self._columns = table.columns
        if self._format is DataFormat.CSV:
            self._rows = CsvRows(table.columns)
        else:
            self._rows = JsonRows(self._use.columns)
        self._line += chunk.count(b"\n", 0, begin)
        self._offset = begin
        return chunk[begin:]

    def _take(self, block: bytes) -> None:
        """Check whole rows, and note the offsets that the index is to have."""
        if not block:
            return
        assert self._rows is not None
        self._check_text(block)
        try:
            starts = self._rows.find_starts(block)
        except LineError as fault:
            raise self._fault(fault.line, fault.reason) from None
        if len(block) > LONGEST_ROW_BYTES:
            self._check_lengths(block, starts)
        if self._use.in_headers and _MAYBE_CONTROL.search(block):
            self._check_headers(block, starts)
        rows = len(starts) - 1
        noted = array(
            "Q",
            [self._offset + start for start in starts[-self._count % ROWS_OF_BLOCK : rows : ROWS_OF_BLOCK]],
        )
        if sys.byteorder == "big":
            noted.byteswap()
        self._index.write(noted)
        self._index_digest.update(noted)
        self._count += rows
        self._offset += len(block)
        self._line += block.count(b"\n")

    def _check_text(self, block: bytes) -> None:
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                raise self._fault(block.count(b"\n", 0, error.start), "is not UTF-8") from None

    def _check_lengths(self, block: bytes, starts: list[int]) -> None:
        for start, end in pairwise(starts):
            if end - start > LONGEST_ROW_BYTES:
                self._refuse_long(block.count(b"\n", 0, start))

    def _check_headers(self, block: bytes, starts: list[int]) -> None:
        """Look at the values of the columns that stand in headers."""
        names = sorted(self._use.in_headers)
        if self._format is DataFormat.JSON_LINES:
            columns = parse_lines(block, names)
        else:
            places = [self._columns.index(name) for name in names]
            columns = parse_columns(block, places, len(self._columns))
        for number, row in enumerate(zip(*columns, strict=True)):
            for name, value in zip(names, row, strict=True):
                if CONTROL_CHARACTER.search(value):
                    raise self._fault(
                        block.count(b"\n", 0, starts[number]),
                        f"{name} has a line break or control character, which no header may have",
                    )

    def _refuse_long(self, line: int) -> None:
        hint = "; is a quotation mark left open?" if self._format is DataFormat.CSV else ""
        raise self._fault(line, f"is longer than {LONGEST_ROW_BYTES >> 20} MiB{hint}")

    def _fault(self, line: int, reason: str) -> DataError:
        return DataError(f"{self._name}:{self._line + line}: {reason}")


def _open(path: Path, name: str) -> BinaryIO:
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error
    except ValueError as error:  # a path with a NUL
        raise DataError(f"{format_value(name)} is not the path of a file") from error
    file.close()
    raise DataError(f"{name}: is not a regular file")


def _read_chunk(file: BinaryIO, name: str) -> bytes:
    try:
        return file.read(_CHUNK_BYTES)
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error


def _read_table(chunk: bytes, name: str, file_format: DataFormat) -> tuple[DataTable, int]:
    """Read the first chunk of a file: its table, and where its first row begins."""
    if not chunk.strip():
        raise DataError(f"{name}: is empty")
    if len(chunk) < _CHUNK_BYTES and not chunk.endswith(b"\n"):
        chunk += b"\n"
    if b"\n" not in chunk:
        raise DataError(f"{name}:1: is longer than {LONGEST_ROW_BYTES >> 20} MiB")
    mark = len(BYTE_ORDER_MARK) if chunk.startswith(BYTE_ORDER_MARK) else 0
    try:
        if file_format is DataFormat.CSV:
            columns, begin = read_header(chunk)
        else:
            columns, begin = read_keys(chunk[mark : chunk.find(b"\n")]), mark
    except LineError as fault:
        raise DataError(f"{name}:{fault.line + 1}: {fault.reason}") from None
    return DataTable(file_format, columns), begin


def _check_unchanged(path: Path, name: str, before: os.stat_result, after: os.stat_result, size: int) -> None:
    """Compare a file with its former state, and with the file at its path now."""
    try:
        now = path.stat()
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error
    if not size == before.st_size == after.st_size or len({*map(_identify, (before, after, now))}) > 1:
        raise DataError(f"{name}: it changed while it was read; run this again when it is complete")


def _identify(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
