"""The formats of data files."""

from enum import StrEnum
from pathlib import PurePath

from oku_core.data.data_error import DataError
from oku_core.errors import format_value


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
