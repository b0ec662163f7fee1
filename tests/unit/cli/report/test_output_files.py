import json
from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change
from tests.kit.coordinators.transactions import read as read_ledger

from oku_cli.report.history_reader import RunHistory, RunHistoryReader
from oku_cli.report.output_files import OutputFile, ReportWriter
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.runs.run_documents import write_run_history
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.errors import UserError
from oku_core.spec.spec import Spec


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The lines of the history of a run that has not begun."""
    ledger = open_ledger(tmp_path / "ledger.sqlite3")
    try:
        change(ledger, create_run, "r1", Spec(requests=5, name="five"), 1.0)
        summary = build_summary(read_ledger(ledger, fetch_snapshot, "r1"), 2.0)
        return b"".join(write_run_history(ledger, summary, 2.0)).splitlines()
    finally:
        ledger.close()


def build(history: RunHistory) -> str:
    """Build a file that names its run."""
    return f"{history.summary.run} {history.summary.name}"


def read(lines: list[bytes]) -> RunHistory:
    """Read the history from its lines."""
    reader = RunHistoryReader()
    for line in lines:
        reader.take(line)
    return reader.finish()


def test_a_note_names_the_file_that_was_written(
    lines: list[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes to standard error, because a script reads standard output."""
    path = tmp_path / "x.txt"
    OutputFile("--csv", str(path), build).write(read(lines))
    assert path.read_text() == "r1 five"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"wrote {path} (7 B)\n")


def test_a_dash_is_standard_output(lines: list[bytes], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """No note is printed."""
    OutputFile("--csv", "-", build).write(read(lines))
    captured = capfdbinary.readouterr()
    assert (captured.out, captured.err) == (b"r1 five", b"")


def test_a_file_that_cannot_be_written_is_answered_in_one_line(lines: list[bytes], tmp_path: Path) -> None:
    """The error comes early if it can be foreseen, or else when writing fails."""
    for path in (tmp_path, tmp_path / "no" / "x.txt"):
        with pytest.raises(UserError, match=r"--csv: .* is not a file that can be written"):
            OutputFile("--csv", str(path), build).check()
    with pytest.raises(UserError, match=r"--csv: .*: No such file or directory"):
        OutputFile("--csv", str(tmp_path / "no" / "x"), build).write(read(lines))


def test_lines_are_written_as_they_come(lines: list[bytes], tmp_path: Path) -> None:
    """Together they are one JSON document; a history that is cut off makes no report."""
    path = tmp_path / "all.json"
    page = tmp_path / "page.html"
    outputs = [OutputFile("--json", str(path), None), OutputFile("--csv", str(page), build)]
    with ReportWriter(outputs) as writer:
        assert not path.exists()
        for line in lines:
            writer.take(line)
        writer.finish()
    document = json.loads(path.read_bytes())
    assert list(document) == [
        "at",
        "summary",
        "spec",
        "extent",
        "periods",
        "samples",
        "events",
        "leases",
        "slices",
        "again",
    ]
    assert document["slices"] == [[0, 5, "pending"]]
    assert page.read_text() == "r1 five"
    with ReportWriter(outputs[1:]) as writer:
        for line in lines[:-1]:
            writer.take(line)
        with pytest.raises(UserError, match="its history cannot be read: it is cut off"):
            writer.finish()


def test_secrets_are_written_only_on_request(lines: list[bytes], tmp_path: Path) -> None:
    """Without `show_secrets`, they are masked."""
    path = tmp_path / "all.json"
    head, *rest = lines
    head = head.replace(b'"spec":{', b'"spec":{"body":"hunter2",', 1)
    for show_secrets in (False, True):
        with ReportWriter([OutputFile("--json", str(path), None)], show_secrets=show_secrets) as writer:
            for line in (head, *rest):
                writer.take(line)
            writer.finish()
        assert (b"hunter2" in path.read_bytes()) == show_secrets
        assert (b'"body":"***"' in path.read_bytes()) != show_secrets


def test_what_is_not_a_history_is_an_error(tmp_path: Path) -> None:
    """A coordinator of another version may send another format; nothing is written then."""
    path = tmp_path / "all.json"
    writer = ReportWriter([OutputFile("--json", str(path), None)])
    with writer, pytest.raises(UserError, match="its history cannot be read: "):
        writer.take(b'{"at":1.0,"summary":{},"spec":{},"samples":[]}')
    assert not path.exists()
