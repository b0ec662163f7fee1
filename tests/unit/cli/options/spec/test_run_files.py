import hashlib
from pathlib import Path

import pytest

from oku_cli.options.spec.run_files import build_finder, read_files
from oku_core.errors import UserError
from oku_core.spec.files import list_files
from oku_core.spec.parser import Source, parse_spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").write_bytes(b"authority")
    return tmp_path


def test_a_certificate_with_the_mark_goes_along(folder: Path) -> None:
    """The spec names it by its digest; one without the mark stays a path of the workers."""
    read = read_files([Source(None, {"url": "https://a/", "cacert": "@ca.pem", "cert": "/certs/client.pem"})])
    spec = parse_spec(*read.sources)
    [named] = list_files(spec)
    assert spec.cacert == str(named)
    assert (named.digest, named.name) == (hashlib.sha256(b"authority").hexdigest(), "ca.pem")
    assert spec.cert == "/certs/client.pem"
    assert [file.reference for file in read.files] == [named]
    assert build_finder(read.files)(named) == folder / "ca.pem"


def test_a_path_that_begins_with_the_mark_is_written_with_two(folder: Path) -> None:
    """As a body that begins with it is."""
    read = read_files([Source(None, {"url": "https://a/", "cacert": "@@odd.pem"})])
    assert parse_spec(*read.sources).cacert == "@odd.pem"
    assert read.files == []


def test_a_long_body_becomes_a_file(folder: Path) -> None:
    """A short one stays in the spec, as does the type that its content tells."""
    (folder / "short.json").write_text('{"i": {i}}')
    (folder / "long.json").write_text(f'{{"text": "{"x" * (1 << 20)}"}}')
    read = read_files([Source(None, {"url": "http://a/", "body": "@short.json"})])
    assert (parse_spec(*read.sources).body, read.files) == ('{"i": {i}}', [])
    read = read_files([Source(None, {"url": "http://a/", "body": "@long.json"})])
    spec = parse_spec(*read.sources)
    assert [spec.body] == [str(file.reference) for file in read.files]
    assert "Content-Type: application/json" in spec.headers
    assert spec.method == "POST"


def test_a_spec_file_names_files_beside_it_only(folder: Path) -> None:
    """A spec file may be somebody else's."""
    (folder / "below").mkdir()
    (folder / "below" / "ca.pem").write_text("a")
    [file] = read_files([Source("below/spec.yaml", {"cacert": "@ca.pem"})]).files
    assert file.reference.name == "ca.pem"
    with pytest.raises(UserError) as caught:
        read_files([Source("below/spec.yaml", {"key": "@../ca.pem"})])
    assert str(caught.value) == (
        "below/spec.yaml: key: ../ca.pem is not in the folder of the spec file or below it; "
        "only the command line may name such a file, with --key"
    )


def test_of_a_key_only_the_last_value_is_read(folder: Path) -> None:
    """The file of one that is overridden need not be there."""
    (folder / "ca.pem").write_text("a")
    sources = [Source("spec.yaml", {"cacert": "@none.pem"}), Source(None, {"cacert": "@ca.pem"})]
    assert len(read_files(sources).files) == 1


def test_what_is_wrong_with_a_file_is_said_in_one_line(folder: Path) -> None:
    """It is missing, too large, or has a placeholder that cannot be."""
    with (folder / "large.pem").open("wb") as large:
        large.truncate((1 << 20) + 1)
    (folder / "body").write_text("{env:1} " + "x" * (1 << 20))
    for key, value, fault in (
        ("cert", "@none.pem", "--cert: @none.pem: No such file or directory"),
        ("cert", "@large.pem", "--cert: @large.pem: is larger than 1 MiB"),
        (
            "body",
            "@body",
            "--body: @body: {env:1} is not of the form {env:NAME} or {file:NAME}; NAME may have",
        ),
    ):
        with pytest.raises(UserError) as caught:
            read_files([Source(None, {key: value})])
        assert str(caught.value).startswith(fault)
