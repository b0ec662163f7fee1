from pathlib import Path

import pytest

from oku_cli.options.spec.data_scan import scanned
from oku_cli.options.spec.file_values import read_files
from oku_core.errors import UserError
from oku_core.spec.files import list_files
from oku_core.spec.parser import Source, build_mapping, parse_spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called, with a file of data and another below it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skus.csv").write_text("sku,text\n" + "".join(f"s{row},t\n" for row in range(100)))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "ids.jsonl").write_text('{"id": 1, "x": 2}\n{"id": 2}\n')
    return tmp_path


def read_fault(*sources: Source) -> str:
    """Return the one line that says what is wrong."""
    with pytest.raises(UserError) as caught, scanned(read_files(sources)):
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "repeat"),
    [
        ("skus.csv", False),
        ("skus.csv:repeat", True),
        ({"file": "skus.csv"}, False),
        ({"file": "skus.csv", "repeat": True}, True),
    ],
)
def test_data_becomes_two_files_of_the_run(folder: Path, value: object, *, repeat: bool) -> None:
    """The file and its row index are uploaded, and the spec names both by what is in them."""
    with scanned(read_files([Source("spec.yaml", {"url": "http://h/{sku}", "data": value})])) as read:
        spec = parse_spec(*read.sources)
        assert [file.reference for file in read.files] == list(list_files(spec))
        assert [file.path.stat().st_size for file in read.files] == [(folder / "skus.csv").stat().st_size, 16]
    assert spec.data is not None
    assert (spec.requests, spec.data.rows, spec.data.repeat, spec.data.columns) == (
        100, 100, repeat, ("sku", "text"),
    )  # fmt: skip
    assert not read.files[1].path.exists()


def test_only_the_last_source_of_data_counts(folder: Path) -> None:
    """A flag overrides a file, whose data is not even read."""
    sources = [
        Source("spec.yaml", {"url": "http://h/{sku}", "data": "none.csv"}),
        Source(None, {"data": str(folder / "skus.csv")}),
    ]
    with scanned(read_files(sources)) as read:
        assert parse_spec(*read.sources).requests == 100
    # A spec that was scanned is taken as it is. So the spec of a run can be submitted again.
    with scanned(read_files([Source(None, {"url": "http://h/{sku}", "data": "skus.csv"})])) as read:
        spec = parse_spec(*read.sources)
    with scanned(read_files([Source("again", build_mapping(spec))])) as again:
        assert parse_spec(*again.sources) == spec


def test_a_row_without_a_column_that_is_used_is_refused(folder: Path) -> None:
    """Others may lack what no request needs; what a body file uses counts as well."""
    (folder / "body.json").write_text('{"x": "{x}"}')
    path = "below/ids.jsonl"
    with scanned(read_files([Source(None, {"url": "http://h/{id}", "data": path})])) as read:
        assert parse_spec(*read.sources).requests == 2
    for values in ({"url": "http://h/{x}"}, {"url": "http://h/", "body": "@body.json"}):
        assert read_fault(Source(None, {**values, "data": path})) == f"{path}:2: has no x"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (
            {"data": ""},
            "spec.yaml: data: '' is not the path of a file, with :repeat behind it to start over,",
        ),
        ({"data": 7}, "spec.yaml: data: 7 is not the path of a file"),
        (
            {"data": {"file": "skus.csv", "repeat": "yes"}},
            "spec.yaml: data: {'file': 'skus.csv', 'repeat': 'ye",
        ),
        ({"data": {"path": "skus.csv"}}, "spec.yaml: data: {'path': 'skus.csv'} is not the path of a file"),
        (
            {"data": "../skus.csv"},
            "spec.yaml: data: ../skus.csv is not in the folder of the spec file or below",
        ),
        (
            {"data": "/etc/hosts.csv"},
            "spec.yaml: data: /etc/hosts.csv is not in the folder of the spec file or",
        ),
        ({"data": "none.csv"}, "none.csv: No such file or directory"),
        (
            {"data": "skus.csv", "url": "http://h/{skuu}"},
            "spec.yaml: url: {skuu} is not a column of skus.csv (",
        ),
        (
            {"data": "skus.csv", "targets": [{"url": "/{a}"}]},
            "spec.yaml: targets: GET /{a}: url: {a} is not a column",
        ),
    ],
)
def test_what_is_wrong_with_data_is_said_in_one_line(
    folder: Path, values: dict[str, object], fault: str
) -> None:
    """Before anything is started or uploaded."""
    assert read_fault(Source("spec.yaml", values)).startswith(fault)


def test_a_file_that_may_not_be_named_is_refused(folder: Path) -> None:
    """It names a file that is not uploaded."""
    body = f"@@sha256:{'a' * 64}:3:x"
    fault = read_fault(Source(None, {"url": "http://h/{sku}", "data": "skus.csv", "body": body}))
    assert fault == "body @x cannot be used: it is not here; @ and its path name a file"
    # A link does not lead out of the folder of a spec file.
    (folder / "below" / "link.csv").symlink_to(folder / "skus.csv")
    (folder / "below" / "spec.yaml").touch()
    fault = read_fault(Source("below/spec.yaml", {"url": "http://h/{sku}", "data": "link.csv"}))
    assert fault.startswith(
        "below/spec.yaml: data: link.csv is not in the folder of the spec file or below it"
    )
