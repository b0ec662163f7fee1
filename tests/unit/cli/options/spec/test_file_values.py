import hashlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from oku_cli.options.spec.file_values import build_file_finder, read_files
from oku_core.errors import UserError
from oku_core.spec.files import list_files
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.values.request_content import MOST_BODY_BYTES


def read(*bodies: object, label: str = "spec.yaml") -> str | None:
    """The body of a spec: the last of these is a flag, those before it stand in a file."""
    *files, flag = bodies
    sources = [*(Source(label, {"body": body}) for body in files), Source(None, {"body": flag})]
    return parse_spec(*read_files(sources).sources).body


def read_fault(*bodies: object, label: str = "spec.yaml") -> str:
    """What the user is told."""
    with pytest.raises(UserError) as caught:
        read(*bodies, label=label)
    return str(caught.value)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "content",
    [b"", b"a\n", b"a\r\n\r\n", '{"a": {"b": "größe {i}"}}\n'.encode(), b"\xef\xbb\xbfa\x00", b"@x"],
)
def test_a_file_is_sent_byte_for_byte(folder: Path, content: bytes) -> None:
    """A line break at its end is part of it."""
    (folder / "body").write_bytes(content)
    body = read("@body")
    assert body is not None
    assert body.encode() == content


def test_a_file_may_be_named_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is relative to the folder of the command; ~ is the user's own."""
    (folder / "a@b c").write_text("x")
    monkeypatch.setenv("HOME", str(folder))
    assert [read("@./a@b c"), read(f"@{folder}/a@b c"), read("@~/a@b c")] == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("written", "body"), [("@@", "@"), ("@@me: hi", "@me: hi"), ("a@b", "a@b"), ("", "")]
)
def test_a_body_may_begin_with_the_sign(written: str, body: str) -> None:
    """It is written twice, as a flag and in a file."""
    assert read(written) == body
    assert parse_spec(*read_files([Source("spec.yaml", {"body": written})]).sources).body == body


def test_a_spec_file_names_files_beside_it_only(folder: Path) -> None:
    """It may be somebody else's, and would send any file of the user's to any target."""
    (folder / "secret").write_text("x")
    (folder / "below" / "bodies").mkdir(parents=True)
    (folder / "below" / "bodies" / "order").write_text("y")
    assert read("@bodies/order", "@@", label="below/spec.yaml") == "@"
    [source] = read_files([Source("below/spec.yaml", {"body": "@bodies/order"})]).sources
    assert source.values == {"body": "y"}
    for name in ("../secret", str(folder / "secret"), "bodies/../../secret", "a\0b"):
        with pytest.raises(UserError) as caught:
            read_files([Source("below/spec.yaml", {"body": f"@{name}"})])
        assert "is not in the folder of the spec file or below it" in str(caught.value)
    assert str(caught.value).endswith("; only the command line may name such a file, with --body")
    # Bodies of targets are read.
    (folder / "order").write_text('{"sku": "{i}"}\n')
    (folder / "-").write_text("dash")
    targets = [
        {"name": "buy", "url": "/buy", "body": "@order"},
        {"name": "dash", "url": "/dash", "body": "@-"},
        {"name": "sign", "url": "/sign", "body": "@@"},
        {"name": "none", "url": "/none"},
    ]
    spec = parse_spec(*read_files([Source("spec.yaml", {"targets": targets})]).sources)
    assert [target.body for target in spec.targets] == ['{"sku": "{i}"}\n', "dash", "@", None]
    with pytest.raises(UserError) as caught:
        read_files([Source("spec.yaml", {"targets": [targets[3], {"url": "/a", "body": "@../order"}]})])
    assert str(caught.value) == (
        "spec.yaml: targets: 2: body: ../order is not in the folder of the spec file or below it"
    )


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are kept, too."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\r\n")))
    assert read("@-") == "a\r\n"
    # Standard input may be closed. A service manager may have started the command without one.
    monkeypatch.setattr(sys, "stdin", None)
    assert read_fault("@-") == "--body: @-: is closed"
    # Standard input is read once. It cannot be the spec and its body.
    assert read_fault("x", "@-", label="standard input") == "--body: @-: standard input is the spec already"


def test_what_is_not_text_is_left_to_the_parser() -> None:
    """It says what is wrong."""
    for body in [None, 5, ["@body"]]:
        assert "is not text" in read_fault(body)
    # A file that is not a mapping is left to the parser. It says what is wrong.
    values: Any = ["body"]
    source = Source("spec.yaml", values)
    assert read_files([source]).sources == [source]


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").write_bytes(b"authority")
    return tmp_path


def test_a_certificate_with_the_mark_goes_along(run_folder: Path) -> None:
    """The spec names it by its digest; one without the mark stays a path of the workers."""
    read = read_files([Source(None, {"url": "https://a/", "cacert": "@ca.pem", "cert": "/certs/client.pem"})])
    spec = parse_spec(*read.sources)
    [named] = list_files(spec)
    assert spec.cacert == str(named)
    assert (named.digest, named.name) == (hashlib.sha256(b"authority").hexdigest(), "ca.pem")
    assert spec.cert == "/certs/client.pem"
    assert [file.reference for file in read.files] == [named]
    assert build_file_finder(read.files)(named.digest) == run_folder / "ca.pem"
    # A path that begins with the mark is written with two. As a body that begins with it is.
    read = read_files([Source(None, {"url": "https://a/", "cacert": "@@odd.pem"})])
    assert parse_spec(*read.sources).cacert == "@odd.pem"
    assert read.files == []


def test_long_bodies_and_bytes_become_files(folder: Path, run_folder: Path) -> None:
    """A spec has 1 MiB for all of them."""
    (folder / "half").write_text("x" * (600 << 10))
    targets = [{"url": f"/{name}", "body": "@half"} for name in "abc"]
    read = read_files([Source("spec.yaml", {"targets": targets})])
    bodies = [target.body for target in parse_spec(*read.sources).targets]
    assert bodies == ["x" * (600 << 10), *(str(file.reference) for file in read.files)]
    assert len(read.files) == 2
    # A body that is not text becomes a file. A spec is text, but any file can be sent.
    (folder / "message.bin").write_bytes(b"\0\0\0\0\xff")
    read = read_files([Source(None, {"body": "@message.bin"})])
    [file] = read.files
    assert parse_spec(*read.sources).body == str(file.reference)
    assert file.reference.size == 5
    # A long body becomes a file. A short one stays in the spec, as does the type that its content tells.
    (run_folder / "short.json").write_text('{"i": {i}}')
    (run_folder / "long.json").write_text(f'{{"text": "{"x" * (1 << 20)}"}}')
    read = read_files([Source(None, {"url": "http://a/", "body": "@short.json"})])
    assert (parse_spec(*read.sources).body, read.files) == ('{"i": {i}}', [])
    read = read_files([Source(None, {"url": "http://a/", "body": "@long.json"})])
    spec = parse_spec(*read.sources)
    assert [spec.body] == [str(file.reference) for file in read.files]
    assert "Content-Type: application/json" in spec.headers
    assert spec.method == "POST"


def test_a_spec_file_names_files_of_the_run_beside_it_only(run_folder: Path) -> None:
    """A spec file may be somebody else's."""
    (run_folder / "below").mkdir()
    (run_folder / "below" / "ca.pem").write_text("a")
    [file] = read_files([Source("below/spec.yaml", {"cacert": "@ca.pem"})]).files
    assert file.reference.name == "ca.pem"
    with pytest.raises(UserError) as caught:
        read_files([Source("below/spec.yaml", {"key": "@../ca.pem"})])
    assert str(caught.value) == (
        "below/spec.yaml: key: ../ca.pem is not in the folder of the spec file or below it; "
        "only the command line may name such a file, with --key"
    )
    # Of a key only the last value is read. The file of one that is overridden need not be there.
    (run_folder / "ca.pem").write_text("a")
    sources = [Source("spec.yaml", {"cacert": "@none.pem"}), Source(None, {"cacert": "@ca.pem"})]
    assert len(read_files(sources).files) == 1


def test_a_file_that_cannot_be_sent_is_refused_in_one_line(folder: Path, run_folder: Path) -> None:
    """The line names the flag, the file and what is wrong with it."""
    with (folder / "large").open("wb") as large:
        large.truncate(MOST_BODY_BYTES + 1)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    assert read_fault("@~nobody-of-this-name/x").endswith(": No such file or directory")
    assert read_fault("@none") == "--body: @none: No such file or directory"
    assert read_fault("@") == "--body: @: No such file or directory"
    assert read_fault("@folder") == "--body: @folder: Is a directory"
    assert read_fault("@pipe") == "--body: @pipe: is neither a regular file nor - for standard input"
    assert read_fault("@large") == "--body: @large: is larger than 64 MiB"
    # What is wrong with a file is said in one line.
    with (run_folder / "large.pem").open("wb") as large:
        large.truncate((1 << 20) + 1)
    (run_folder / "body").write_text("{env:1} " + "x" * (1 << 20))
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
