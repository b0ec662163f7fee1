"""The blocks of rows of a file that was scanned, found by its row index, as the bytes that stand there."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from oku_core.data.data_format import DataError
from oku_core.data.scan import LONGEST_ROW_BYTES, OFFSET_BYTES, ROWS_OF_BLOCK, DataTable


class ScannedFile(NamedTuple):
    """A file of rows that is here.

    Attributes:
        data_path: the file.
        index_path: its row index.
        table: its format and columns.
        rows: how many rows it has.
    """

    data_path: Path
    index_path: Path
    table: DataTable
    rows: int


class BlockFile:
    """Reads the blocks of a file.

    Raises:
        DataError: the files cannot be opened, or are not of this size.
    """

    def __init__(self, scanned: ScannedFile) -> None:
        rows = scanned.rows
        self._files: list[int] = []
        try:
            for path in (scanned.data_path, scanned.index_path):
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            self._size: Final = os.fstat(self._files[0]).st_size
            index_size = os.fstat(self._files[1]).st_size
        except OSError as error:
            self.close()
            raise DataError(f"data cannot be read: {error.strerror}") from error
        if index_size != OFFSET_BYTES * -(-rows // ROWS_OF_BLOCK):
            self.close()
            raise DataError(f"the row index of the data has {index_size} bytes, which is not for {rows} rows")

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.pop())

    def read(self, number: int) -> bytes:
        """The rows of a block, each with its line break.

        Raises:
            OSError: it cannot be read.
            ValueError: the files do not belong together, or are damaged.
        """
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
        # Blank lines at the end of the file are no rows.
        return bytes(content).rstrip(b"\r\n") + b"\n"
