"""The rows of the data of a run, for user code."""

from collections.abc import Callable, Mapping
from pathlib import Path

from oku.host.user_module import LoadError
from oku_core.data.data_format import DataError
from oku_core.data.escape import AS_TEXT
from oku_core.data.row_reader import RowReader, Value
from oku_core.spec.spec import Spec


def open_rows(spec: Spec, paths: Mapping[str, str]) -> Callable[[int], dict[str, str]] | None:
    """Open the data of a spec; gives what reads the row of an index, or None if there is no data.

    Args:
        spec: the spec.
        paths: where its files are, by their digests.

    Raises:
        LoadError: they cannot be opened.
    """
    data = spec.data
    if data is None:
        return None
    values = [Value(column, AS_TEXT) for column in data.columns]
    try:
        reader = RowReader(Path(paths[data.digest]), Path(paths[data.index]), data.table, data.rows, values)
    except DataError as error:
        raise LoadError(f"data {data.name} cannot be used: {error}") from error

    def read_row(index: int) -> dict[str, str]:
        return {
            column: value.decode() for column, value in zip(data.columns, reader.read(index), strict=True)
        }

    return read_row
