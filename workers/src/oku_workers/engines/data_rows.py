"""The rows of a run with data, as its engine reads them."""

from collections.abc import Callable
from pathlib import Path

from oku_core.data.data_error import DataError
from oku_core.data.row_reader import RowReader
from oku_core.spec.spec import Spec
from oku_workers.engines.engine_error import EngineError
from oku_workers.engines.request_parts import list_values


def open_rows(spec: Spec, find_file: Callable[[str], Path]) -> RowReader | None:
    """Open the data of a spec; None if it has none, or no request uses it. Whoever opens it closes it.

    Args:
        spec: with the URLs of its targets, those of Oku's own delay servers included.
        find_file: gives the path of a file by its digest.

    Raises:
        EngineError: the files cannot be opened, or are not what the spec says.
    """
    data, values = spec.data, list_values(spec)
    if data is None or not values:
        return None
    try:
        return RowReader(find_file(data.digest), find_file(data.index), data.table, data.rows, values)
    except DataError as error:
        raise EngineError(f"data {data.name} cannot be used: {error}") from error
