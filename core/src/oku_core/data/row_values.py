"""The values of a single row that is known already, in the place of a file of rows."""

from collections.abc import Mapping, Sequence
from typing import Final

from oku_core.data.data_error import DataError
from oku_core.data.row_reader import Row, Value


class RowValues:
    """Gives the values of a row as they are written into a request, whatever the index is.

    Args:
        values: what of the row is wanted.
        row: its values by their columns.

    Attributes:
        values: as given.
        row: as given; another one may take its place.
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
