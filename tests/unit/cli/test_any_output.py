"""Every command of `oku` ends with any standard output as it does on a terminal with UTF-8."""

import ast
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change
from tests.kit.runs.seconds import draw_seconds

import oku_cli
from oku_cli.main import COMMANDS, main
from oku_cli.terminal import printable
from oku_coordinator.ledger.rules.history import keep_second
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec

NAME, LONE = "naïve 💥 億", "\udcff"
URL = "http://127.0.0.1:1/"
ENCODINGS = ("ascii", "latin-1", "cp1252", "cp437", "shift_jis", "koi8-r", "utf-7", "utf-16")
LINES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "run": ((URL, "-n", "0", "--name", NAME), (f"{NAME}.yaml",), (f"{LONE}.py",)),
    "resume": ((f"{NAME} ",), (LONE,)),
    "pause": ((NAME,), (LONE,)),
    "cancel": (("億",), (LONE,)),
    "wait": ((NAME,), (NAME, "--json"), (LONE,)),
    "runs": ((), ("--json",), ("--data-dir", NAME)),
    "show": ((NAME,), (NAME, "--json"), (NAME, "--index", "0"), (LONE,)),
    "failures": ((NAME,), (NAME, "--json"), (NAME, "--csv")),
    "replay": ((NAME, "99"), (LONE, "0")),
    "retry": ((NAME,), (LONE,)),
    "report": ((NAME, "-o", "-"), (NAME, "--json"), (NAME, "-o", f"{NAME}.html")),
    "compare": (("r1", "r2"), ("r1", "r2", "--json"), (NAME, LONE)),
    "rm": (("億",), (LONE,)),
    "import": (("curl", f"curl {URL}ü -H 'X: 💥'"), ("curl", f"curl {URL} -d '{LONE}'"), ("har", NAME)),
    "completion": (("bash",), ("zsh",), ("fish",), (NAME,)),
    "server": (("--delay", NAME), ("--delay", LONE)),
    "worker": (("--broker-url", NAME),),
    "coordinator": (("--broker-url", NAME),),
}
"""Lines of each command that neither send, nor wait, nor change anything; `--help` is added."""
DATA = ({"-o", "-"}, {"--csv"}, {"import", "curl"})
"""A line with all words of one of these prints what programs read."""
_TIME = re.compile(rb"\d\d:\d\d:\d\d")
"""A report says when it was made."""


class Ended(NamedTuple):
    """A command that is over: its exit code, and what it has written."""

    code: object
    out: bytes
    err: bytes


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two runs in its data folder, one of which has a name in three scripts."""
    monkeypatch.chdir(tmp_path)
    for name in ("set_format", "set_level"):  # the logs of this process stay as they are
        monkeypatch.setattr(f"oku_cli.process.logs.{name}", lambda _: None)
    (tmp_path / ".oku").mkdir(mode=0o700)
    ledger = open_ledger(tmp_path / ".oku" / "ledger.sqlite3")
    for seed, (run, name) in enumerate((("r1", "plain"), ("r2", NAME))):
        change(ledger, create_run, run, Spec(requests=5, name=name), 1.0)
        for sample in draw_seconds(4, seed=seed)[0]:
            change(
                ledger, keep_second, run, msgspec.structs.replace(sample, outcomes=[0] * len(sample.outcomes))
            )
    ledger.close()
    return tmp_path


@contextmanager
def redirected(streams: Mapping[int, int]) -> Iterator[None]:
    """Have file descriptors of this process be others."""
    kept = {number: os.dup(number) for number in streams}
    try:
        for number, file in streams.items():
            os.dup2(file, number)
        yield
    finally:
        for number, file in kept.items():
            os.dup2(file, number)
            os.close(file)


def call(folder: Path, words: tuple[str, ...], encoding: str, output: int | None = None) -> Ended:
    """Call `oku` as Python would start it on streams with this encoding, which is strict.

    Args:
        folder: for what it writes.
        words: its arguments.
        encoding: of both streams.
        output: its standard output, which is closed afterwards; a file by default.
    """
    with (
        (folder / "out").open("wb+") as out,
        (folder / "err").open("wb+") as err,
        pytest.MonkeyPatch.context() as patch,
        redirected({1: out.fileno() if output is None else output, 2: err.fileno()}),
    ):
        for number, name in ((1, "stdout"), (2, "stderr")):
            stream = io.TextIOWrapper(io.FileIO(number, "wb", closefd=False), encoding=encoding)
            patch.setattr(sys, name, stream)
            patch.setattr(sys, f"__{name}__", stream)
        patch.setattr("sys.argv", ["oku", *words])
        with pytest.raises(SystemExit) as ending:
            main()
        sys.stdout.flush()
        sys.stderr.flush()
    if output is not None:
        os.close(output)
    return Ended(ending.value.code or 0, (folder / "out").read_bytes(), (folder / "err").read_bytes())


def list_lines() -> Iterator[tuple[str, ...]]:
    """All lines, with the help of each command."""
    for name in COMMANDS:
        yield name, "--help"
        yield from ((name, *words) for words in LINES[name])


def test_no_command_is_left_out() -> None:
    """A new one needs lines here."""
    assert set(LINES) == set(COMMANDS)
    assert all(LINES.values())


@pytest.mark.parametrize(
    "encoding", [ENCODINGS[0], *(pytest.param(each, marks=pytest.mark.heavy) for each in ENCODINGS[1:])]
)
def test_what_a_terminal_cannot_show_changes_no_exit_code(folder: Path, encoding: str) -> None:
    """Text comes in the encoding of the terminal, JSON in ASCII, and other data as it is in a file."""
    faults = []
    for words in list_lines():
        usual, ended = (call(folder, words, each) for each in ("utf-8", encoding))
        if ended.code != usual.code or b"Traceback" in ended.err or is_other(words, ended, usual, encoding):
            faults.append((words, usual, ended))
    assert faults == []


def is_other(words: tuple[str, ...], ended: Ended, usual: Ended, encoding: str) -> bool:
    """Whether a command has not written what it should have, by what it writes in UTF-8."""
    if usual.out and "--json" in words:
        return read_json(ended.out.decode("ascii")) != read_json(usual.out.decode())
    if any(data.issubset(words) for data in DATA):
        return _TIME.sub(b"", ended.out) != _TIME.sub(b"", usual.out)
    return is_other_text(ended.out, usual.out, encoding) or is_other_text(ended.err, usual.err, encoding)


def read_json(text: str) -> object:
    """A document, without the time at which it was made."""
    document = json.loads(text)
    if isinstance(document, dict):
        document.pop("at", None)
    return document


def is_other_text(shown: bytes, usual: bytes, encoding: str) -> bool:
    """Whether a text differs in more than signs that are not ASCII."""
    text, whole = shown.decode(encoding), usual.decode()
    return len(text) != len(whole) or any(
        one != other and other.isascii() for one, other in zip(text, whole, strict=True)
    )


def test_nothing_that_oku_writes_itself_becomes_a_question_mark(folder: Path) -> None:
    """Its own signs have others in ASCII that look alike."""
    for words in (("show", "r1"), ("compare", "r1", "r1"), ("failures", "r1")):
        assert b"?" not in call(folder, words, "ascii").out
    for path in {*Path(oku_cli.__path__[0]).rglob("*.py")} - {Path(printable.__file__)}:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                shown = "".join(filter(str.isprintable, node.value)).encode("ascii", "oku.replacing")
                assert shown.count(b"?") == node.value.count("?"), (path, node.lineno)


@pytest.mark.heavy
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_nobody_takes_changes_no_exit_code_and_a_full_disk_does(folder: Path) -> None:
    """What is lost on a full disk would have been read; whoever closes a pipe has read enough."""
    faults = []
    for words in list_lines():
        usual = call(folder, words, "utf-8")
        closed, full = call(folder, words, "ascii", open_closed_pipe()), call_on_full_disk(folder, words)
        loses = usual.code == 0 and usual.out != b""
        is_told = b"standard output: No space left" in full.err
        if (closed.code, full.code, is_told) != (usual.code, 2 if loses else usual.code, loses):
            faults.append((words, usual.code, closed, full))
        assert b"Traceback" not in closed.err + full.err
    assert faults == []


def open_closed_pipe() -> int:
    """The end of a pipe whose other end nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def call_on_full_disk(folder: Path, words: tuple[str, ...]) -> Ended:
    """As `call`, with a standard output that takes nothing."""
    return call(folder, words, "ascii", os.open("/dev/full", os.O_WRONLY))
