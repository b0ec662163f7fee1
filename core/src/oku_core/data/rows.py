"""Some rows of a file that was scanned, as people are shown them: each with all of its columns."""

import csv
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from oku_core.data.block_file import BlockFile
from oku_core.data.csv_rows import parse_rows
from oku_core.data.data_error import DataError
from oku_core.data.data_format import DataFormat
from oku_core.data.json_rows import parse_objects
from oku_core.data.scan import ROWS_OF_BLOCK, Table

TextRow = Mapping[str, str]
"""The values of a row by their columns; in JSON lines, a row may lack those that no request uses."""
MOST_CHARACTERS = 16 << 20
"""So much text some rows have together, their columns counted with each."""


def read_rows(data_path: Path, index_path: Path, table: Table, rows: int, wanted: range) -> list[TextRow]:
    """The rows of some requests in a row; the rows begin anew after the last.

    Long rows are fewer than asked for, but at least one: together they have no more than `MOST_CHARACTERS`.

    Args:
        data_path: the file.
        index_path: its row index.
        table: its format and columns.
        rows: how many rows it has.
        wanted: the indices of the requests.

    Raises:
        DataError: the files cannot be read, or are not what they should be.
    """
    known, block = -1, list[TextRow]()
    found: list[TextRow] = []
    characters = 0
    with closing(BlockFile(data_path, index_path, rows)) as file:
        try:
            for index in wanted:
                number, place = divmod(index % rows, ROWS_OF_BLOCK)
                if number != known:
                    known, block = number, _parse(file.read(number), table)
                characters += sum(len(column) + len(value) for column, value in block[place].items())
                if found and characters > MOST_CHARACTERS:
                    break
                found.append(block[place])
        except OSError as error:
            raise DataError(f"data cannot be read: {error.strerror}") from error
        except (ValueError, IndexError, csv.Error) as error:
            raise DataError(f"the data or its row index is damaged: {error}") from error
    return found


def _parse(content: bytes, table: Table) -> list[TextRow]:
    if table.format is DataFormat.CSV:
        return [dict(zip(table.columns, row, strict=True)) for row in parse_rows(content)]
    return parse_objects(content, table.columns)
