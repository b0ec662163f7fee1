"""Any row of a file that was scanned, found by its row index, with values as they are written into requests.

Blocks of 64 rows are read and parsed as a whole: requests of a lease walk through them row by row, and
those of several leases, or of a lane, through several blocks side by side.
"""

import csv
import os
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from oku_core.data.csv_rows import parse_rows
from oku_core.data.data_error import DataError
from oku_core.data.data_format import DataFormat
from oku_core.data.escape import Escape
from oku_core.data.json_rows import parse_lines
from oku_core.data.scan import LONGEST_ROW_BYTES, OFFSET_BYTES, ROWS_OF_BLOCK, Table

CACHE_BYTES = 8 << 20
"""About how much memory the blocks of a reader take; the newest one stays in any case."""

_ROW_BYTES, _VALUE_BYTES = 120, 60
"""What a parsed row, and each of its values, takes beside its text, about."""


class Value(NamedTuple):
    """What of each row is wanted.

    Attributes:
        column: the name of the column.
        escape: how its values are written.
    """

    column: str
    escape: Escape


class RowReader:
    """Reads rows of a file; not for several threads at a time.

    Args:
        data_path: the file.
        index_path: its row index.
        table: its format and columns.
        rows: how many rows it has.
        values: what of each row is wanted, at least one.

    Attributes:
        values: as given.
        cached_bytes: about how much memory the blocks that it keeps take.

    Raises:
        DataError: the files cannot be opened, or are not of this size.
    """

    def __init__(
        self, data_path: Path, index_path: Path, table: Table, rows: int, values: Sequence[Value]
    ) -> None:
        self._table: Final = table
        self._rows: Final = rows
        self._columns: Final = tuple(dict.fromkeys(value.column for value in values))
        self.values: Final = tuple(values)
        self._written: Final = [(self._columns.index(value.column), value.escape) for value in values]
        self._places: Final = [table.columns.index(column) for column in self._columns]
        self._blocks: dict[int, Sequence[tuple[str, ...]]] = {}
        self._sizes: dict[int, int] = {}
        self.cached_bytes = 0
        self._files: list[int] = []
        try:
            for path in (data_path, index_path):
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            self._size: Final = os.fstat(self._files[0]).st_size
            index_size = os.fstat(self._files[1]).st_size
        except OSError as error:
            self.close()
            raise DataError(f"data cannot be read: {error.strerror}") from error
        if index_size != OFFSET_BYTES * -(-rows // ROWS_OF_BLOCK):
            self.close()
            raise DataError(f"the row index of the data has {index_size} bytes, which is not for {rows} rows")

    def __enter__(self) -> Self:
        """Nothing is read yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())

    def read(self, index: int) -> tuple[str, ...]:
        """The values of the row of a request, in the order of `values`; the rows begin anew after the last.

        Raises:
            DataError: the file cannot be read, or is not the one of this row index.
        """
        row = index % self._rows
        number = row // ROWS_OF_BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._load(number)
        return block[row % ROWS_OF_BLOCK]

    def _load(self, number: int) -> Sequence[tuple[str, ...]]:
        """Read and parse a block."""
        try:
            content = self._read_block(number)
            block = self._parse(content)
        except OSError as error:
            raise DataError(f"data cannot be read: {error.strerror}") from error
        except (ValueError, IndexError, csv.Error, msgspec.MsgspecError) as error:
            raise DataError(f"the data or its row index is damaged: {error}") from error
        expected = min(ROWS_OF_BLOCK, self._rows - number * ROWS_OF_BLOCK)
        if len(block) < expected:
            raise DataError("the data or its row index is damaged: a row is missing")
        self._keep(number, block, len(content) + len(block) * (_ROW_BYTES + _VALUE_BYTES * len(self.values)))
        return block

    def _keep(self, number: int, block: Sequence[tuple[str, ...]], size: int) -> None:
        self.cached_bytes += size
        while self._blocks and self.cached_bytes > CACHE_BYTES:
            oldest = next(iter(self._blocks))
            del self._blocks[oldest]
            self.cached_bytes -= self._sizes.pop(oldest)
        self._blocks[number] = block
        self._sizes[number] = size

    def _read_block(self, number: int) -> bytes:
        data, index = self._files
        offsets = os.pread(index, 2 * OFFSET_BYTES, number * OFFSET_BYTES)
        begin = int.from_bytes(offsets[:OFFSET_BYTES], "little")
        end = int.from_bytes(offsets[OFFSET_BYTES:], "little") if len(offsets) > OFFSET_BYTES else self._size
        if not begin < end <= min(self._size, begin + ROWS_OF_BLOCK * LONGEST_ROW_BYTES):
            raise ValueError("offsets are out of order")
        content = bytearray()
        while len(content) < end - begin:  # one call gives all but for a signal
            piece = os.pread(data, end - begin - len(content), begin + len(content))
            if not piece:
                raise ValueError("the file has become shorter")
            content += piece
        return bytes(content)

    def _parse(self, content: bytes) -> Sequence[tuple[str, ...]]:
        # Blank lines at the end of the file are no rows.
        content = content.rstrip(b"\r\n") + b"\n"
        columns: Sequence[Sequence[str]]
        if self._table.format is DataFormat.CSV:
            rows = parse_rows(content)
            columns = [list(map(itemgetter(place), rows)) for place in self._places]
        else:
            columns = list(zip(*parse_lines(content, self._columns), strict=True))
        written = [escape.write_all(columns[number]) for number, escape in self._written]
        return list(zip(*written, strict=True))
