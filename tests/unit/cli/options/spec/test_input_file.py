"""What a spec from standard input may name: no file, or those of one folder."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from oku_cli.main import main
from oku_cli.options.spec.code_scan import read_code
from oku_cli.options.spec.data_scan import scanned
from oku_cli.options.spec.file_values import read_files
from oku_cli.options.spec.input_file import StreamedSpec, is_stream
from oku_core.errors import UserError
from oku_core.spec.fields import FIELDS
from oku_core.spec.parser import Source, parse_spec
from oku_core.spec.spec import Spec
from oku_core.spec.target import TARGET_KEYS

CONTENT = b"async def scenario(http):\n    pass\n"
"""What is a scenario, rows, a body and, as far as it is only named, a certificate."""
OPENED: list[str] = []


def note_opening(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook, which cannot be removed: every file that this process opens."""
    if event == "open":
        OPENED.append(str(arguments[0]))


sys.addaudithook(note_opening)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is called: a secret, and a folder that may be allowed with a file and links."""
    monkeypatch.chdir(tmp_path)
    for name in ("secret.py", "own.py", "allowed/fine.py", "allowed/importing.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(CONTENT)
    (tmp_path / "allowed/importing.py").write_bytes(b"import link\n" + CONTENT)
    (tmp_path / "allowed/link.py").symlink_to(tmp_path / "secret.py")
    (tmp_path / "allowed/elsewhere").symlink_to(tmp_path)
    return tmp_path


def iter_namings(path: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every key of the table, and of a target, with every way in which a value could name a file."""
    forms: list[Any] = [path, f"@{path}", f"@@{path}", f"{path}:repeat", {"file": path}, {"path": path}]
    for form in (*forms, *([form] for form in forms)):
        for field in FIELDS:
            yield field.key, {field.key: form}
        for key in TARGET_KEYS:
            yield f"targets: {key}", {"targets": [{"url": "http://h/", key: form}]}


def read(source: Source) -> Spec:
    """The spec of a source beside a scenario of the command line, with which files may be included."""
    own = [Source(None, {"scenario": "own.py"})] if "include" in source.values else []
    with scanned(read_code(read_files([*own, source]))) as found:
        return parse_spec(*found.sources)


def find_named(path: str, files_dir: Path | None, fault: str) -> set[str]:
    """The keys that name a file: they are refused with this fault. No key may have the secret opened."""
    named = set()
    for place, values in iter_namings(path):
        OPENED.clear()
        try:
            read(StreamedSpec("standard input", values, files_dir=files_dir))
        except UserError as error:
            if fault in str(error):
                named.add(place)
        opened = {Path(name).resolve() for name in OPENED}
        assert Path("secret.py").resolve() not in opened, (place, values)
    return named


NAMING = {field.key for field in FIELDS if "FILE" in field.metavar} | {"targets: body"}


def test_no_key_of_a_streamed_spec_names_a_file(folder: Path) -> None:
    """Where the table has FILE, a file is refused; no other key, however it is written, opens one."""
    fault = "is a file, and standard input may name files only with --files-dir FOLDER"
    for path in ("secret.py", str(folder / "secret.py")):
        assert find_named(path, None, fault) == NAMING


def test_a_streamed_spec_names_no_file_outside_of_the_folder_that_is_allowed(folder: Path) -> None:
    """By no full path, no `..` and no link, also of what is imported there."""
    fault = "is not in the folder of --files-dir or below it"
    paths = ("../secret.py", str(folder / "secret.py"), "link.py", "elsewhere/secret.py")
    for path in paths:
        assert find_named(path, Path("allowed"), fault) >= NAMING - {"include"}, path
    assert "scenario" in find_named("importing.py", Path("allowed"), fault)


def test_the_folder_is_where_names_begin(folder: Path) -> None:
    """A certificate without the mark is there as well: what is streamed names no file of the workers."""
    values = {"url": "https://h/", "body": "@fine.py", "cacert": "fine.py", "data": "rows.csv"}
    (folder / "allowed/rows.csv").write_text("id\n1\n")
    OPENED.clear()
    spec = read(StreamedSpec("standard input", values, files_dir=Path("allowed")))
    assert str(folder / "allowed/fine.py") in OPENED
    assert (spec.body, str(spec.cacert)[:8]) == (CONTENT.decode(), "@sha256:")
    code = read(StreamedSpec("standard input", {"scenario": "fine.py"}, files_dir=Path("allowed")))
    assert code.scenario is not None
    assert code.scenario.path == "fine.py"
    # A flag replaces what may not be named. Of a key only the last value counts.
    streamed = StreamedSpec("standard input", {"url": "http://h/", "body": "@secret.py"})
    found = read_files([streamed, Source(None, {"body": "text"})])
    assert parse_spec(*found.sources).body == "text"


def test_every_name_of_an_open_file_is_a_stream(folder: Path) -> None:
    """A spec that a shell puts there has no folder of its own, however the file is called."""
    with (folder / "own.py").open() as file:
        (folder / "spec.yaml").symlink_to(f"/dev/fd/{file.fileno()}")
        names = ["-", "/dev/stdin", *(f"{at}/{file.fileno()}" for at in ("/dev/fd", "/proc/self/fd"))]
        for name in (*names, "spec.yaml", f"/dev/../proc/thread-self/fd/{file.fileno()}"):
            assert is_stream(name), name
        (folder / "loop").symlink_to("loop")
        for name in ("own.py", "allowed/link.py", "/dev/null", "/dev/shm/spec.yaml", "loop", "none", "a\0b"):
            assert not is_stream(name), name


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["{open}"], "{open}: body: secret.py is a file, and {open} may name files only with --files-dir"),
        (["{open}", "--files-dir", "none"], "--files-dir: none is not a folder here"),
        (["http://127.0.0.1:9/", "--files-dir", "allowed"], "--files-dir: is for a spec from standard input"),
    ],
)
def test_the_command_says_so_in_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    fault: str,
) -> None:
    """Before anything is started."""
    (folder / "spec").write_text("body: '@secret.py'")
    with (folder / "spec").open() as file:
        given = f"/dev/fd/{file.fileno()}"
        monkeypatch.setattr("sys.argv", ["oku", "run", *(each.format(open=given) for each in arguments)])
        with pytest.raises(SystemExit) as ending, suppress(KeyboardInterrupt):
            main()
    shown = capsys.readouterr()
    assert (ending.value.code, shown.out) == (2, "")
    assert shown.err.startswith(f"oku: {fault.format(open=given)}")
    assert shown.err.count("\n") == 1
