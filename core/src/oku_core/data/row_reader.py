"""Any row of a file that was scanned, found by its row index, with values as they are written into requests.

A block of 64 rows is parsed as a whole as soon as a second one of its rows is wanted: requests of a lease
walk through blocks row by row, and requests of several leases, or of a lane, through several blocks side by
side. If lanes skip most rows and need only one of each block, that row alone is parsed.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from oku_core.data.block_file import BlockFile, ScannedFile
from oku_core.data.csv_rows import find_row, parse_columns, parse_rows
from oku_core.data.data_format import WHOLE_ROW, DataError, DataFormat
from oku_core.data.escape import Escape
from oku_core.data.json_rows import find_line, parse_lines, parse_objects, split_lines
from oku_core.data.scan import ROWS_OF_BLOCK, DataTable

CACHE_BYTES = 8 << 20
"""About how much memory the blocks of a reader take; the newest one stays in any case."""
CACHED_BLOCKS = 64
"""How many blocks a reader keeps at most: more of them would only be in the way in the caches of a CPU."""

_UNREADABLE = (OSError, ValueError, IndexError, csv.Error)
_ROW_BYTES, _VALUE_BYTES = 120, 40
"""What a parsed row, and each of its values, takes beside its text, about."""

Row = tuple[bytes, ...]
"""Values of a row, as they are written into a request."""


class Value(NamedTuple):
    """A value wanted from each row.

    Attributes:
        column: the name of the column.
        escape: how its values are written.
    """

    column: str
    escape: Escape


class _Block(NamedTuple):
    """A block of which rows are cached.

    Attributes:
        rows: the places of all of its rows, or of one.
        size: about how much memory it takes.
        content: what the others are found in; empty if there are none.
    """

    rows: range
    size: int
    content: bytes


class _KnownRows(dict[int, Row]):
    """Rows by their places in the file; one that is not known yet is found. Other look-ups run in C."""

    def __init__(self, count: int, find: Callable[[int], Row]) -> None:
        self._count, self._find = count, find

    def __missing__(self, index: int) -> Row:
        return self._find(index) if index < self._count else self[index % self._count]


class RowReader:
    """Reads rows of a file; not for several threads at a time.

    Args:
        scanned: the file.
        values: the values wanted from each row, at least one.

    Attributes:
        values: as given.
        read: gives the values of the row of a request, in UTF-8 and in the order of `values`; the rows begin
            anew after the last. It raises a `DataError` if the file cannot be read, or is not the one of this
            row index.
        cached_bytes: about how much memory the blocks that it keeps take.

    Raises:
        DataError: the files cannot be opened, or are not of this size.
    """

    def __init__(self, scanned: ScannedFile, values: Sequence[Value]) -> None:
        table = scanned.table
        self._rows: Final = scanned.rows
        self.values: Final = tuple(values)
        self._columns: Final = tuple(dict.fromkeys(value.column for value in values))
        self._written: Final = [(self._columns.index(value.column), value.escape) for value in values]
        self._is_csv: Final = table.format is DataFormat.CSV
        self._find: Final = find_row if self._is_csv else find_line
        self._width: Final = len(table.columns)
        self._places: Final = [table.columns.index(each) for each in self._columns if self._is_csv]
        self._has_whole: Final = WHOLE_ROW in self._columns and WHOLE_ROW not in table.columns
        self._known: Final = _KnownRows(scanned.rows, self._load)
        self.read: Final[Callable[[int], Row]] = self._known.__getitem__
        self._blocks: dict[int, _Block] = {}
        self.cached_bytes = 0
        self._file: Final = BlockFile(scanned)

    def close(self) -> None:
        """Close the files."""
        self._file.close()

    def _load(self, row: int) -> Row:
        """Find a row, and know it from now on; those around it, too, if they may be wanted."""
        number, place = divmod(row, ROWS_OF_BLOCK)
        try:
            known = self._blocks.get(number)
            content = self._file.read(number) if known is None else known.content
            if self._is_wanted(number):
                places, rest = range(row - place, min(row - place + ROWS_OF_BLOCK, self._rows)), b""
                rows = self._parse(content)
            else:
                places, rest = range(row, row + 1), content
                rows = self._parse(self._find(content, place))
            if len(rows) != len(places):
                raise ValueError("a row is missing")
        except _UNREADABLE as error:
            raise _explain(error) from error
        size = len(content) + len(rows) * (_ROW_BYTES + _VALUE_BYTES * len(self.values))
        self._keep(number, _Block(places, size, rest), rows)
        return rows[row - places.start]

    def _is_wanted(self, number: int) -> bool:
        """Whether all rows of a block may be wanted: one of them was, or all of the block before."""
        before = self._blocks.get(number - 1)
        return number in self._blocks or (before is not None and not before.content)

    def _keep(self, number: int, block: _Block, rows: Sequence[Row]) -> None:
        """Know the rows of a block from now on, and forget the others if they are too many."""
        if (known := self._blocks.pop(number, None)) is not None:
            self.cached_bytes -= known.size
        if self.cached_bytes + block.size > CACHE_BYTES or len(self._blocks) == CACHED_BLOCKS:
            # All at once: that costs a row next to nothing. Rows that are wanted again are read again.
            self._blocks.clear()
            self._known.clear()
            self.cached_bytes = 0
        self._blocks[number] = block
        self._known.update(zip(block.rows, rows, strict=True))
        self.cached_bytes += block.size

    def _parse(self, content: bytes) -> Sequence[Row]:
        if self._is_csv:
            columns = parse_columns(content, self._places, self._width)
        else:
            columns = list(self._parse_lines(content))
        written = [escape.write_all(columns[number]) for number, escape in self._written]
        return list(zip(*written, strict=True))

    def _parse_lines(self, content: bytes) -> Sequence[Sequence[bytes]]:
        if not self._has_whole:
            return parse_lines(content, self._columns)
        named = [column for column in self._columns if column != WHOLE_ROW]
        parsed = iter(parse_lines(content, named) if named else ())
        return [split_lines(content) if each == WHOLE_ROW else next(parsed) for each in self._columns]


class RowValues:
    """Gives the values of the row of any index as they are written into a request.

    Attributes:
        values: the values wanted from the row.
        row: its values by their columns; another one may take its place.
    """

    def __init__(self, values: Sequence[Value], row: Mapping[str, str] | None = None) -> None:
        self.values: Final = tuple(values)
        self.row = row or {}

    def read(self, _: int) -> Row:
        """The values of the row, in UTF-8 and in the order of `values`; `DataError` if it lacks one."""
        try:
            return tuple(
                value.escape.write_all([self.row[value.column].encode()])[0] for value in self.values
            )
        except KeyError as error:
            raise DataError(f"the row has no {error.args[0]}") from None


TextRow = Mapping[str, str]
"""The values of a row by their columns; in JSON lines, a row may lack those that no request uses."""
MOST_CHARACTERS = 16 << 20
"""So much text some rows have together, their columns counted with each."""


def read_rows(scanned: ScannedFile, wanted: range) -> list[TextRow]:
    """The rows of some requests in a row; the rows begin anew after the last.

    Long rows are fewer than asked for, but at least one: together they have no more than `MOST_CHARACTERS`.

    Raises:
        DataError: the files cannot be read, or are not what they should be.
    """
    known, block = -1, list[TextRow]()
    found: list[TextRow] = []
    characters = 0
    with closing(BlockFile(scanned)) as file:
        try:
            for index in wanted:
                number, place = divmod(index % scanned.rows, ROWS_OF_BLOCK)
                if number != known:
                    known, block = number, _parse(file.read(number), scanned.table)
                characters += sum(len(column) + len(value) for column, value in block[place].items())
                if found and characters > MOST_CHARACTERS:
                    break
                found.append(block[place])
        except _UNREADABLE as error:
            raise _explain(error) from error
    return found


def _explain(error: Exception) -> DataError:
    if isinstance(error, OSError):
        return DataError(f"data cannot be read: {error.strerror}")
    return DataError(f"the data or its row index is damaged: {error}")


def _parse(content: bytes, table: DataTable) -> list[TextRow]:
    if table.format is DataFormat.CSV:
        return [dict(zip(table.columns, row, strict=True)) for row in parse_rows(content)]
    return parse_objects(content, table.columns)
