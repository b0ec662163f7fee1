import pytest

from oku_core.data.data_error import DataError
from oku_core.data.escape import AS_TEXT, IN_JSON, IN_URL
from oku_core.data.row_reader import Value
from oku_core.data.row_values import RowValues


def test_values_are_written_as_their_place_demands() -> None:
    """The same one may be wanted in several places; another row may take the place of the first."""
    values = [Value("a", IN_URL), Value("a", AS_TEXT), Value("b", IN_JSON)]
    rows = RowValues(values, {"a": "x/é", "b": '"'})
    assert rows.values == tuple(values)
    assert rows.read(0) == rows.read(7) == (b"x%2F%C3%A9", "x/é".encode(), b'\\"')
    rows.row = {"a": "1", "b": "2"}
    assert rows.read(0) == (b"1", b"1", b"2")


def test_a_row_that_lacks_a_column_is_refused() -> None:
    """The error names it."""
    with pytest.raises(DataError, match="the row has no b"):
        RowValues([Value("b", AS_TEXT)], {"a": "x"}).read(0)
