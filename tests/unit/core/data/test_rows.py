import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.scanned import scan_table

from oku_core.data.data_error import DataError
from oku_core.data.rows import read_rows

VALUES = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(['"', "\n", "\r\n", ","])
TABLES = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=150)


@given(table=TABLES, start=st.integers(0, 300), length=st.integers(1, 200))
def test_rows_are_read_as_the_file_has_them(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]], start: int, length: int
) -> None:
    """Any of them in a row, which begin anew after the last, in both formats."""
    folder, columns = tmp_path_factory.mktemp("rows"), ("a", "b.c")
    text = io.StringIO()
    csv.writer(text).writerows([columns, *table])
    lines = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in table)
    expected = [
        dict(zip(columns, table[index % len(table)], strict=True)) for index in range(start, start + length)
    ]
    for name, content in (("t.csv", text.getvalue()), ("t.jsonl", lines)):
        (folder / name).write_bytes(content.encode())
        scanned, found = scan_table(folder, name)
        wanted = range(start, start + length)
        assert read_rows(folder / name, folder / "index", scanned, found.rows, wanted) == expected


def test_a_line_of_json_may_lack_what_no_request_uses(tmp_path: Path) -> None:
    """Its row lacks it, too; numbers stay as they are written."""
    (tmp_path / "t.jsonl").write_text('{"a": 1.50, "b": "x"}\n{"a": true, "other": 1}\n')
    table, found = scan_table(tmp_path, "t.jsonl", "a")
    rows = read_rows(tmp_path / "t.jsonl", tmp_path / "index", table, found.rows, range(3))
    assert rows == [{"a": "1.50", "b": "x"}, {"a": "true"}, {"a": "1.50", "b": "x"}]


def test_long_rows_are_read_some_at_a_time(tmp_path: Path) -> None:
    """A thousand of them would not fit into memory; whoever wants more goes on behind those that came."""
    value = "x" * 1_000_000
    (tmp_path / "t.csv").write_text("a\n" + f"{value}\n" * 20)
    table, found = scan_table(tmp_path, "t.csv")
    for start, count in ((0, 16), (16, 4), (19, 1)):
        rows = read_rows(tmp_path / "t.csv", tmp_path / "index", table, found.rows, range(start, 20))
        assert rows == [{"a": value}] * count


def test_another_file_than_was_scanned_is_refused(tmp_path: Path) -> None:
    """Whether it is shorter, is no table, or is not there."""
    path, index = tmp_path / "t.csv", tmp_path / "index"
    path.write_text("a,b\n" + "1,2\n" * 100)
    table, found = scan_table(tmp_path, "t.csv")
    for content in ("a,b\n1,2\n", "a,b\n" + "1,2,3\n" * 70):
        path.write_text(content)
        with pytest.raises(DataError, match="the data or its row index is damaged"):
            read_rows(path, index, table, found.rows, range(98, 100))
    path.unlink()
    with pytest.raises(DataError, match="data cannot be read: No such file"):
        read_rows(path, index, table, found.rows, range(1))
