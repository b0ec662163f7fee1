import csv
import io
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.runs.scanned import scan_table

from oku_core.data.block_file import ScannedFile
from oku_core.data.data_format import DataError
from oku_core.data.escape import AS_TEXT, IN_HEADER, IN_JSON, IN_URL, Escape
from oku_core.data.row_reader import CACHE_BYTES, CACHED_BLOCKS, Row, RowReader, RowValues, Value, read_rows
from oku_core.data.scan import Use, read_table, scan

VALUES = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"', '""', "\n", "\r\n", ",", "é"]
)
WIDTHS = st.integers(1, 4)
TABLES = WIDTHS.flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=200)
)


def read_all(folder: Path, name: str, content: bytes, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Scan a file, then read its rows one by one."""
    path, index = folder / name, folder / "index"
    path.write_bytes(content)
    table = read_table(path, name)
    found = scan(path, name, index, Use(frozenset(columns)))
    values = [Value(name, AS_TEXT) for name in columns]
    with closing(RowReader(ScannedFile(path, index, table, found.rows), values)) as reader:
        return [decode(reader.read(row)) for row in range(found.rows)]


def decode(row: Row) -> tuple[str, ...]:
    """The values of a row as texts."""
    return tuple(value.decode() for value in row)


@given(table=TABLES, quotes_all=st.booleans())
def test_every_row_of_a_csv_file_is_read_as_it_was_written(
    table: list[list[str]], *, quotes_all: bool
) -> None:
    """Whatever the csv module writes is read back, each row once and in its order."""
    columns = [f"c{number}" for number in range(len(table[0]))]
    text = io.StringIO()
    csv.writer(
        text,
        lineterminator="\n" if quotes_all else "\r\n",
        quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL,
    ).writerows([columns, *table])
    with TemporaryDirectory() as folder:
        rows = read_all(Path(folder), "t.csv", text.getvalue().encode(), columns)
    assert rows == [tuple(row) for row in table]


@given(table=TABLES, is_ascii=st.booleans())
def test_every_row_of_json_lines_is_read_as_it_was_written(table: list[list[str]], *, is_ascii: bool) -> None:
    """Whatever the json module writes is read back, each row once and in its order."""
    columns = [f"c{number}" for number in range(len(table[0]))]
    lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=is_ascii) for row in table)
    with TemporaryDirectory() as folder:
        rows = read_all(Path(folder), "t.jsonl", "\n".join(lines).encode(), columns)
    assert rows == [tuple(row) for row in table]


def write_numbers(folder: Path, rows: int) -> Path:
    """Write a file whose rows have their numbers, and its index."""
    path = folder / "n.csv"
    path.write_text("a,b\n" + "".join(f"{row},b {row}\n" for row in range(rows)))
    scan(path, "n.csv", folder / "index")
    return path


def locate(path: Path, rows: int) -> ScannedFile:
    """Where such a file is."""
    return ScannedFile(path, path.with_name("index"), read_table(path, path.name), rows)


def open_numbers(
    path: Path, rows: int, values: Sequence[Value] = (Value("a", AS_TEXT),)
) -> closing[RowReader]:
    """Open such a file."""
    return closing(RowReader(locate(path, rows), values))


def test_what_is_no_string_in_json_is_read_as_it_stands_there(tmp_path: Path) -> None:
    """A price of 1.50 stays one, and an object is its JSON."""
    content = b'{"a": 1.50, "b": null, "c": [1, {"d": 2}]}\n{"a": "x", "b": true, "c": -1e9}\n\n\n'
    assert read_all(tmp_path, "t.jsonl", content, "abc") == [
        ("1.50", "null", '[1, {"d": 2}]'),
        ("x", "true", "-1e9"),
    ]
    # A line of json may have carriage returns between its parts.
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(b'{"a":\r"%d"\r\r}\r\n' % row for row in range(200)))
    scan(path, path.name, tmp_path / "index")
    with open_numbers(path, 200) as reader:
        assert [decode(reader.read(row)) for row in (150, 70, 199)] == [("150",), ("70",), ("199",)]
    # Values are written as their places want it. The same column may stand in several places of a request.
    path = tmp_path / "n.csv"
    path.write_bytes('a,b\nplain,plain\n"a ""/é\nb",x\n'.encode())
    scan(path, "n.csv", tmp_path / "index")
    values = [Value("a", escape) for escape in (IN_URL, IN_JSON, IN_HEADER, AS_TEXT)] + [Value("b", IN_URL)]
    with open_numbers(path, 2, values) as reader:
        assert decode(reader.read(0)) == ("plain",) * 5
        assert decode(reader.read(1)) == ("a%20%22%2F%C3%A9%0Ab", 'a \\"/é\\nb', 'a "/é b', 'a "/é\nb', "x")


@pytest.mark.heavy
def test_the_memory_of_a_reader_is_bounded(tmp_path: Path) -> None:
    """However many rows are read, and wherever, only some blocks of them are kept."""
    rows = 64 * 40
    path = tmp_path / "n.csv"
    path.write_text("a\n" + "".join(f"{row}-{'x' * 9_000}\n" for row in range(rows)))
    scan(path, "n.csv", tmp_path / "index")
    with open_numbers(path, rows) as reader:
        for row in (*range(0, rows, 64), *range(63, rows, 64)):
            assert reader.read(row)[0].startswith(b"%d-" % row)
            assert reader.cached_bytes <= CACHE_BYTES


@given(
    indices=st.lists(st.integers(0, 999), max_size=60)
    | st.tuples(st.integers(0, 63), st.integers(1, 130)).map(
        lambda lane: list(range(lane[0], 5000, lane[1]))
    ),
    is_quoted=st.booleans(),
    is_json=st.booleans(),
)
def test_rows_are_found_in_any_order(indices: list[int], *, is_quoted: bool, is_json: bool) -> None:
    """One after the other, with strides of any width, and again and again over the end of the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "n.jsonl" if is_json else "n.csv")
        rows = ["a,b"] * (not is_json)
        for row in range(300):
            text = json.dumps(f'{row}\n"' if is_quoted else f"{row}")
            rows.append(f'{{"a": {text}}}' if is_json else f'"{row}\n""",x' if is_quoted else f"{row},x")
        path.write_text("\n".join(rows))
        scan(path, path.name, path.with_name("index"))
        with open_numbers(path, 300) as reader:
            for index in indices:
                assert decode(reader.read(index)) == (f'{index % 300}\n"' if is_quoted else f"{index % 300}",)


def test_of_a_block_that_is_asked_for_one_row_no_other_is_parsed(tmp_path: Path) -> None:
    """Lanes of many workers take few rows of each block; the second one makes the reader parse all."""
    path = tmp_path / "n.csv"
    path.write_text("a\n" + "".join(f"{row}\n" for row in range(6400)))
    scan(path, "n.csv", tmp_path / "index")
    escaped: list[int] = []

    def note(value: bytes) -> bytes:
        escaped.extend(map(int, value.split()))
        return value

    with open_numbers(path, 6400, [Value("a", Escape(b"", note))]) as reader:
        for row in range(0, 6400, 64):
            reader.read(row)
        assert escaped == list(range(0, 6400, 64))
        escaped.clear()
        reader.read(6399)
        assert escaped == list(range(6336, 6400))


def test_rows_start_over_after_the_last(tmp_path: Path) -> None:
    """More requests than rows, where the spec says so, use the rows again from the first one."""
    path = write_numbers(tmp_path, 100)
    with open_numbers(path, 100) as reader:
        assert [reader.read(index) for index in (0, 99, 100, 163, 10**15 + 7)] == [
            (b"0",), (b"99",), (b"0",), (b"63",), (b"7",),
        ]  # fmt: skip
    # Rows that start over are not read again. A few rows serve many requests.
    path = write_numbers(tmp_path, 10)
    escaped: list[bytes] = []

    def note(value: bytes) -> bytes:
        escaped.append(value)
        return value

    with open_numbers(path, 10, [Value("a", Escape(b"", note))]) as reader:
        assert [int(reader.read(index)[0]) for index in range(1000)] == [*range(10)] * 100
        assert len(escaped) <= 4
    # Few blocks are kept. What was read long ago is read anew.
    path = write_numbers(tmp_path, 64 * (CACHED_BLOCKS + 1))
    with open_numbers(path, 64 * (CACHED_BLOCKS + 1)) as reader:
        sizes = []
        for row in range(64 * (CACHED_BLOCKS + 1)):
            reader.read(row)
            sizes.append(reader.cached_bytes)
        assert sizes[-1] < sizes[-65] * 1.02
        assert reader.read(0) == (b"0",)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    """A row index of another file would lead to the middle of a row."""
    path = write_numbers(tmp_path, 100)
    index = tmp_path / "index"
    with pytest.raises(DataError, match="the row index of the data has 16 bytes, which is not for 200 rows"):
        open_numbers(path, 200)
    with pytest.raises(DataError, match="data cannot be read: No such file"):
        RowReader(locate(path, 100)._replace(data_path=tmp_path / "none.csv"), [])
    whole = index.read_bytes()
    for damaged in (whole[8:] + whole[:8], b"\xff" * 16, whole[:8] + whole[:8]):
        index.write_bytes(damaged)
        with open_numbers(path, 100) as reader, pytest.raises(DataError, match="its row index is damaged"):
            reader.read(0)
    index.write_bytes(whole)
    path.write_text("a,b\n1,2\n")
    with open_numbers(path, 100) as reader, pytest.raises(DataError, match="its row index is damaged"):
        reader.read(70)
    # Json lines that are not those of the scan are refused.
    path, index = tmp_path / "t.jsonl", tmp_path / "index"
    path.write_bytes(b'{"a": 1}\n')
    table, rows = read_table(path, "t.jsonl"), scan(path, "t.jsonl", index, Use(frozenset("a"))).rows
    for damaged in (b'{"b": 1}\n', b'{"a": x}\n', b'["a", 1]\n'):
        path.write_bytes(damaged)
        with (
            closing(RowReader(ScannedFile(path, index, table, rows), [Value("a", AS_TEXT)])) as reader,
            pytest.raises(DataError, match="the data or its row index is damaged"),
        ):
            reader.read(0)


def test_values_are_written_as_their_place_demands() -> None:
    """The same one may be wanted in several places; another row may take the place of the first."""
    values = [Value("a", IN_URL), Value("a", AS_TEXT), Value("b", IN_JSON)]
    rows = RowValues(values, {"a": "x/é", "b": '"'})
    assert rows.values == tuple(values)
    assert rows.read(0) == rows.read(7) == (b"x%2F%C3%A9", "x/é".encode(), b'\\"')
    rows.row = {"a": "1", "b": "2"}
    assert rows.read(0) == (b"1", b"1", b"2")
    # A row that lacks a column is refused. The error names it.
    with pytest.raises(DataError, match="the row has no b"):
        RowValues([Value("b", AS_TEXT)], {"a": "x"}).read(0)


SHOWN_VALUES = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(['"', "\n", "\r\n", ","])
SHOWN_TABLES = st.lists(st.tuples(SHOWN_VALUES, SHOWN_VALUES), min_size=1, max_size=150)


@given(table=SHOWN_TABLES, start=st.integers(0, 300), length=st.integers(1, 200))
def test_rows_are_read_as_the_file_has_them(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]], start: int, length: int
) -> None:
    """Any of them in a row, which begin anew after the last, in both formats."""
    folder, columns = tmp_path_factory.mktemp("rows"), ("a", "b.c")
    text = io.StringIO()
    csv.writer(text).writerows([columns, *table])
    lines = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in table)
    wanted, rows = range(start, start + length), [dict(zip(columns, row, strict=True)) for row in table]
    for name, content in (("t.csv", text.getvalue()), ("t.jsonl", lines)):
        (folder / name).write_bytes(content.encode())
        scanned, found = scan_table(folder, name)
        has_whole = name == "t.jsonl"  # a line of JSON is there as it is, too
        expected = [row | ({"row": json.dumps(row)} if has_whole else {}) for row in rows]
        read = read_rows(ScannedFile(folder / name, folder / "index", scanned, found.rows), wanted)
        assert read == [expected[index % len(table)] for index in wanted]


def test_a_line_of_json_may_lack_what_no_request_uses(tmp_path: Path) -> None:
    """Its row lacks it, too; numbers stay as they are written."""
    texts = ('{"a": 1.50, "b": "x"}', '{"a": true, "other": 1}')
    (tmp_path / "t.jsonl").write_text("\n".join((*texts, "")))
    table, found = scan_table(tmp_path, "t.jsonl", "a")
    rows = read_rows(ScannedFile(tmp_path / "t.jsonl", tmp_path / "index", table, found.rows), range(3))
    one, other = {"a": "1.50", "b": "x", "row": texts[0]}, {"a": "true", "row": texts[1]}
    assert rows == [one, other, one]
    # A column of that name is no whole row.
    (tmp_path / "t.jsonl").write_text('{"row": 1}\n')
    table, found = scan_table(tmp_path, "t.jsonl", "row")
    rows = read_rows(ScannedFile(tmp_path / "t.jsonl", tmp_path / "index", table, found.rows), range(1))
    assert rows == [{"row": "1"}]
    # Long rows are read some at a time.
    value = "x" * 1_000_000
    (tmp_path / "t.csv").write_text("a\n" + f"{value}\n" * 20)
    table, found = scan_table(tmp_path, "t.csv")
    for start, count in ((0, 16), (16, 4), (19, 1)):
        rows = read_rows(
            ScannedFile(tmp_path / "t.csv", tmp_path / "index", table, found.rows), range(start, 20)
        )
        assert rows == [{"a": value}] * count
    # Another file than was scanned is refused. Whether it is shorter, is no table, or is not there.
    path, index = tmp_path / "t.csv", tmp_path / "index"
    path.write_text("a,b\n" + "1,2\n" * 100)
    table, found = scan_table(tmp_path, "t.csv")
    for content in ("a,b\n1,2\n", "a,b\n" + "1,2,3\n" * 70):
        path.write_text(content)
        with pytest.raises(DataError, match="the data or its row index is damaged"):
            read_rows(ScannedFile(path, index, table, found.rows), range(98, 100))
    path.unlink()
    with pytest.raises(DataError, match="data cannot be read: No such file"):
        read_rows(ScannedFile(path, index, table, found.rows), range(1))
