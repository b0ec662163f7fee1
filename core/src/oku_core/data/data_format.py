"""The formats of data files, the names that columns may have, and errors that name a file and a line."""

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import PurePath

from oku_core.errors import UserError, format_value


class DataError(UserError):
    """A file of data cannot be used; the message names the file and, where there is one, the line."""


class LineError(ValueError):
    """One line of a file is wrong.

    Attributes:
        line: its number in the block of lines that was looked at, from 0.
        reason: the fault, to stand behind the file and the number of the line.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class DataFormat(StrEnum):
    """How the rows of a file are written."""

    CSV = "csv"
    JSON_LINES = "jsonl"


def find_format(name: str) -> DataFormat:
    """The format of a file by the end of its name.

    Raises:
        DataError: the name has another end.
    """
    match PurePath(name).suffix.lower():
        case ".csv":
            return DataFormat.CSV
        case ".jsonl" | ".ndjson":
            return DataFormat.JSON_LINES
    raise DataError(f"{format_value(name)}: a file of data ends with .csv, .jsonl or .ndjson")


COLUMN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Letters, digits, `_`, `-` and `.`; a secret such as `{env:NAME}` has a colon, so it is never a column."""
INDEX_NAME = "i"
"""Stands for the index of a request, so no column can have this name."""
WHOLE_ROW = "row"
"""Stands for the whole line of JSON lines, unless a column has this name."""
MOST_COLUMNS = 1_000


def is_column_name(name: str) -> bool:
    """Whether a placeholder can stand for a column of this name."""
    return name != INDEX_NAME and COLUMN_NAME.fullmatch(name) is not None


def check_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The names of the columns of a table in their order.

    Raises:
        ValueError: there is none or there are too many, or a name is empty, given twice, `i`, or has other
            characters than a placeholder may have.
    """
    columns: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise ValueError(f"column {number} has no name")
        if name == INDEX_NAME:
            raise ValueError(f"column {number} is called {INDEX_NAME}, which stands for the index")
        if not COLUMN_NAME.fullmatch(name):
            raise ValueError(
                f"{format_value(name)}, the name of column {number}, has other characters than letters, "
                "digits, _, - and ., or more than 100"
            )
        if name in columns:
            raise ValueError(f"columns {columns[name]} and {number} are both called {name}")
        columns[name] = number
    if not columns:
        raise ValueError("has no columns")
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"has {len(columns)} columns, more than {MOST_COLUMNS}")
    return tuple(columns)
