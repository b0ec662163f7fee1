"""The data of a spec: a file of rows, one for each request, known by its digest."""

from collections.abc import Mapping
from typing import Any

import msgspec

from oku_core.data.block_file import ScannedFile
from oku_core.data.data_format import WHOLE_ROW, DataFormat, check_columns
from oku_core.data.scan import OFFSET_BYTES, ROWS_OF_BLOCK, DataTable, Scan
from oku_core.errors import format_value
from oku_core.spec.values.file_reference import FileRef, FindFile, is_digest
from oku_core.spec.values.scalar import parse_text

_MOST = 10**15
_SHOWN = 20


class DataFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of rows that has been scanned.

    Attributes:
        name: what the user calls it.
        format: how its rows are written.
        digest: the SHA-256 of the file, in hexadecimal.
        size: its bytes.
        rows: how many there are.
        columns: what placeholders may stand for.
        index: the SHA-256 of its row index.
        repeat: whether the rows start over when there are more requests than rows.
    """

    name: str
    format: DataFormat
    digest: str
    size: int
    rows: int
    columns: tuple[str, ...]
    index: str
    repeat: bool = False

    @property
    def table(self) -> DataTable:
        """What its rows are like."""
        return DataTable(self.format, self.columns)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What placeholders in requests may stand for: the columns, and in JSON lines the whole row."""
        has_whole = self.format is DataFormat.JSON_LINES and WHOLE_ROW not in self.columns
        return (*self.columns, WHOLE_ROW) if has_whole else self.columns

    def locate(self, find_file: FindFile) -> ScannedFile:
        """The file where it is here; what `find_file` raises is passed on."""
        return ScannedFile(find_file(self.digest), find_file(self.index), self.table, self.rows)

    def list_files(self) -> tuple[FileRef, FileRef]:
        """The file and its row index, as files of the run."""
        index_bytes = OFFSET_BYTES * -(-self.rows // ROWS_OF_BLOCK)
        return (
            FileRef.build(self.digest, self.size, self.name),
            FileRef.build(self.index, index_bytes, f"rows of {self.name}"),
        )

    def describe_columns(self) -> str:
        """Its name and columns, for a message."""
        shown = ", ".join(self.columns[:_SHOWN]) + (", …" if len(self.columns) > _SHOWN else "")
        return f"{self.name} ({shown})"


def build_data_mapping(data: DataFile) -> dict[str, Any]:
    """Write the data of a spec as a mapping; `parse_data_file` turns it back into an equal one."""
    mapping: dict[str, Any] = msgspec.to_builtins(data)
    return mapping


def describe_scan(name: str, table: DataTable, scan: Scan, *, repeat: bool) -> dict[str, Any]:
    """What `parse_data_file` takes, of a file that was scanned."""
    return {
        "name": name,
        "format": str(table.format),
        "digest": scan.digest,
        "size": scan.size,
        "rows": scan.rows,
        "columns": list(table.columns),
        "index": scan.index_digest,
        "repeat": repeat,
    }


def parse_data_file(value: object) -> DataFile:
    """Parse a command's description of a file of data that it has scanned.

    Raises:
        ValueError: it is the name of a file, which only a command can scan, or lacks something.
    """
    if isinstance(value, DataFile):
        return value
    if not isinstance(value, Mapping) or "digest" not in value:
        keys = ", ".join(DataFile.__struct_fields__)
        raise ValueError(f"{format_value(value)} is not what a scan says of a file: {keys}; oku run scans it")
    try:
        data = msgspec.convert(dict(value), DataFile)
        check_columns(data.columns)
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{format_value(value.get('name'))}: {error}") from None
    name = parse_text(data.name)
    if not name.isprintable() or not name:
        raise ValueError(f"{format_value(name)} is not the name of a file")
    for key in ("digest", "index"):
        if not is_digest(getattr(data, key)):
            raise ValueError(f"{name}: {key}: {format_value(getattr(data, key))} is not a SHA-256 digest")
    for key in ("size", "rows"):
        if not 1 <= getattr(data, key) <= _MOST:
            raise ValueError(f"{name}: {key}: {getattr(data, key)} is not between 1 and {_MOST:_}")
    return data
