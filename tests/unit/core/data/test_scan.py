import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest

from oku_core.data.csv_rows import CsvRows
from oku_core.data.data_format import DataError, DataFormat
from oku_core.data.scan import LONGEST_ROW_BYTES, NO_USE, DataTable, Scan, Use, read_table, scan

ILLEGAL = "has other characters than letters, digits, _, - and ., or more than 100"
STRAY_QUOTE = 'has a quotation mark beside a field or within one; write the field "in quotes", and "" for "'


def write(folder: Path, name: str, content: bytes) -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(content)
    return path


def scan_file(path: Path, use: Use = NO_USE) -> Scan:
    """Scan a file as a command does."""
    read_table(path, path.name)
    return scan(path, path.name, path.with_suffix(".index"), use)


def read_fault(path: Path, use: Use = NO_USE) -> str:
    """Return the one line that says what is wrong with a file."""
    with pytest.raises(DataError) as caught:
        scan_file(path, use)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_scan_gives_digest_size_rows_and_the_digest_of_the_index(tmp_path: Path) -> None:
    """What a scan says of a file and of the index that it wrote is so."""
    content = b"sku,price\n" + b"".join(b"s%d,%d\n" % (row, row) for row in range(130))
    path = write(tmp_path, "skus.csv", content)
    found = scan_file(path)
    index = path.with_suffix(".index").read_bytes()
    assert found == Scan(
        hashlib.sha256(content).hexdigest(), len(content), 130, hashlib.sha256(index).hexdigest()
    )
    offsets = [int.from_bytes(index[place : place + 8], "little") for place in range(0, len(index), 8)]
    assert [content[offset : offset + 6] for offset in offsets] == [b"s0,0\ns", b"s64,64", b"s128,1"]


@pytest.mark.parametrize(
    ("name", "content", "table"),
    [
        ("a.csv", b"sku,price\r\n1,2\r\n", DataTable(DataFormat.CSV, ("sku", "price"))),
        ("a.CSV", b"\xef\xbb\xbfsku\n1", DataTable(DataFormat.CSV, ("sku",))),
        ("a.csv", b'"sku","a.b-c_1"\n1,2\n', DataTable(DataFormat.CSV, ("sku", "a.b-c_1"))),
        (
            "a.jsonl",
            b'\xef\xbb\xbf{"sku": 1, "not a column": 2}\n',
            DataTable(DataFormat.JSON_LINES, ("sku",)),
        ),
        ("a.ndjson", b'{"sku": 1, "i": 2, "b": null}', DataTable(DataFormat.JSON_LINES, ("sku", "b"))),
    ],
)
def test_the_first_line_names_the_columns(
    tmp_path: Path, name: str, content: bytes, table: DataTable
) -> None:
    """The columns of CSV are those of its header, those of JSON lines the keys of the first object."""
    path = write(tmp_path, name, content)
    assert read_table(path, name) == table
    assert scan_file(path).rows == 1


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "d.csv: is empty"),
        (b"\n\n", "d.csv: is empty"),
        (b"a,b\n", "d.csv: has no rows"),
        (b"a,b\n\n\n", "d.csv: has no rows"),
        (b"a,b\n1,2\n1,2,3\n1,2\n", "d.csv:3: has 3 fields, the header has 2"),
        (b"a,b\n1,2\n1\n1,2\n", "d.csv:3: has 1 field, the header has 2"),
        (b'a,b\n1,"x\ny"\n1\n', "d.csv:4: has 1 field, the header has 2"),
        (b"a,b\n1,2\n\n1,2\n", 'd.csv:3: is blank; an empty value alone in its row is written ""'),
        (b"a\n1\n\n1\n", 'd.csv:3: is blank; an empty value alone in its row is written ""'),
        (b"a,\n1,2\n", "d.csv:1: column 2 has no name"),
        (b"a,a\n1,2\n", "d.csv:1: columns 1 and 2 are both called a"),
        (b"a,i\n1,2\n", "d.csv:1: column 2 is called i, which stands for the index"),
        (
            b"a,b c\n1,2\n",
            f"d.csv:1: b c, the name of column 2, {ILLEGAL}",
        ),
        (
            b"env:A\n1\n",
            f"d.csv:1: env:A, the name of column 1, {ILLEGAL}",
        ),
        (b"a,b\n1,\xff\n", "d.csv:2: is not UTF-8"),
        (b"a,\xff\n1,2\n", "d.csv:1: is not UTF-8"),
        (b"a,b\n1,2\r1,2\n", "d.csv:2: has a carriage return outside of quotes"),
        (b'a,b\n1,2\n1,"2\n1,2\n', "d.csv:3: has a quotation mark that is not closed"),
        (b'a,"b\n1,2\n', "d.csv:1: has a quotation mark that is not closed"),
        (
            b'a,b\n1,2\n5" x 3",2\n',
            f"d.csv:3: {STRAY_QUOTE}",
        ),
        (
            b'a,b\n1,2\n1,"2"3\n',
            f"d.csv:3: {STRAY_QUOTE}",
        ),
        (
            b"a\n" + b"1" * (LONGEST_ROW_BYTES + 1) + b"\n",
            "d.csv:2: is longer than 1 MiB; is a quotation mark left open?",
        ),
        (
            b'a\n1\n"1\n' + b"1\n" * LONGEST_ROW_BYTES,
            "d.csv:3: is longer than 1 MiB; is a quotation mark left open?",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said_with_its_line(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    """The message names the file and the line as an editor counts it."""
    assert read_fault(write(tmp_path, "d.csv", content)) == fault


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'{"a": 1}\n[1]\n', "d.jsonl:2: is not an object"),
        (b"[1]\n", "d.jsonl:1: is not an object"),
        (b'{"a": 1}\n{"b": 1}\n', "d.jsonl:2: has no a"),
        (b'{"a": 1}\n\n{"a": 1}\n', "d.jsonl:2: is blank"),
        (
            b'{"a": 1}\n{"a": 1} {"a": 1}\n',
            "d.jsonl:2: is not JSON: JSON is malformed: trailing",
        ),
        (b'{"a": 1}\n{"a": "\xff"}\n', "d.jsonl:2: is not UTF-8"),
        (b'{"a": 1}\n{"a": \n1}\n', "d.jsonl:2: is not JSON: Input data was truncated"),
        (b'{"a": "\\ud800"}\n', "d.jsonl:1: is not JSON: "),
        (b'{"a": 1}\n{"a": ' + b"[" * 100 + b"]" * 100 + b"}\n", "d.jsonl:2: is nested too deep"),
        (b'{"a": 1}\n{"b": ' + b"[" * 990 + b"]" * 990 + b', "a": 1}\n', "d.jsonl:2: is nested too deep"),
        (b'{"a": ' + b'{"a": ' * 90_000 + b"\n", "d.jsonl:1: is nested too deep"),
        (b'{"a": 1}\n{"a": 1, "b": ' + b"[" * 90_000 + b"\n", "d.jsonl:2: is nested too deep"),
        (b'{"not a column": 1}\n', "d.jsonl:1: has no key of letters, digits, _, - and . that could name"),
        (b"{}\n", "d.jsonl:1: has no key of letters, digits, _, - and . that could name a column"),
        (b'{"a": "' + b"1" * LONGEST_ROW_BYTES + b'"}\n', "d.jsonl:1: is longer than 1 MiB"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said_with_its_line(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    """Every line is an object that has what requests use."""
    path = write(tmp_path, "d.jsonl", content)
    assert read_fault(path, Use(frozenset({"a"}))).startswith(fault)


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, digest and index would be those of different files."""
    path = write(tmp_path, "d.csv", b"a\n1\n")
    find_starts = CsvRows.find_starts

    def find_late(rows: CsvRows, block: bytes) -> list[int]:
        os.utime(path, ns=(1, 1))
        return find_starts(rows, block)

    monkeypatch.setattr(CsvRows, "find_starts", find_late)
    with pytest.raises(DataError, match=r"^d\.csv: it changed while it was read; run this again when"):
        scan(path, "d.csv", tmp_path / "index")


def test_a_value_that_would_break_a_header_is_refused(tmp_path: Path) -> None:
    """A line break in the value of a header would begin another header."""
    for name, content, line in [
        ("d.csv", b'a,b\n1,2\n1,"x\r\nSet: 1"\n', 3),
        ("d.csv", b"a,b\n1,2\n1,\0\n", 3),
        ("d.jsonl", b'{"b": "1"}\n{"b": "\\r\\n"}\n', 2),
    ]:
        path = write(tmp_path, name, content)
        use = Use(frozenset({"b"}), in_headers=frozenset({"b"}))
        fault = f"{name}:{line}: b has a line break or control character, which no header may have"
        assert read_fault(path, use) == fault
        assert scan_file(path, Use(frozenset({"b"}))).rows == 2
    # A key that no request uses may be missing. Objects in the lines of a log rarely have the same keys.
    path = write(tmp_path, "d.jsonl", b'{"a": 1, "b": 2}\n{"a": 3}\n')
    assert scan_file(path, Use(frozenset({"a"}))).rows == 2
    # Only regular files of a known format are read.
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    assert read_fault(tmp_path / "pipe.csv") == "pipe.csv: is not a regular file"
    assert read_fault(tmp_path / "folder.csv") == "folder.csv: Is a directory"
    assert read_fault(tmp_path / "none.csv") == "none.csv: No such file or directory"
    assert read_fault(tmp_path / "a.txt") == "a.txt: a file of data ends with .csv, .jsonl or .ndjson"


@pytest.mark.heavy
def test_a_scan_takes_no_more_memory_for_a_larger_file(tmp_path: Path) -> None:
    """What is kept while a file is read does not grow with its rows."""
    peaks = []
    for rows in (100_000, 400_000):
        path = write(tmp_path, f"{rows}.csv", b"a,b\n" + b"sku-12345,some text\n" * rows)
        tracemalloc.start()
        assert scan_file(path).rows == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
