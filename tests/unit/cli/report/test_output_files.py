import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change
from tests.kit.coordinators.transactions import read as read_ledger
from tests.unit.cli.report.conftest import make_sample

from oku_cli.report.history_reader import RunHistory, RunHistoryReader
from oku_cli.report.output_files import (
    CSV_COLUMNS,
    OutputFile,
    ReportWriter,
    build_csv,
    build_hgrm_text,
    mask_head,
)
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.rules.snapshots import fetch_snapshot
from oku_coordinator.runs.run_documents import write_run_history
from oku_coordinator.runs.summary.summaries import build_summary
from oku_core.accounting.outcome import OUTCOMES
from oku_core.accounting.run_state import RunState
from oku_core.errors import UserError
from oku_core.results.event import Event, EventType
from oku_core.spec.spec import Spec
from oku_core.tables.time_tables import LATENCY


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
        reader.read_line(line)
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
    # Lines are written as they come.
    path = tmp_path / "all.json"
    page = tmp_path / "page.html"
    outputs = [OutputFile("--json", str(path), None), OutputFile("--csv", str(page), build)]
    with ReportWriter(outputs) as writer:
        assert not path.exists()
        for line in lines:
            writer.write_line(line)
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
            writer.write_line(line)
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
                writer.write_line(line)
            writer.finish()
        assert (b"hunter2" in path.read_bytes()) == show_secrets
        assert (b'"body":"***"' in path.read_bytes()) != show_secrets


def test_what_is_not_a_history_is_an_error(tmp_path: Path) -> None:
    """A coordinator of another version may send another format; nothing is written then."""
    path = tmp_path / "all.json"
    writer = ReportWriter([OutputFile("--json", str(path), None)])
    with writer, pytest.raises(UserError, match="its history cannot be read: "):
        writer.write_line(b'{"at":1.0,"summary":{},"spec":{},"samples":[]}')
    assert not path.exists()


MakeHistory = Callable[..., RunHistory]


def test_csv_has_a_line_for_each_sample(make_history: MakeHistory) -> None:
    """Columns have the names from docs/metrics.md, and unknown values are empty."""
    history = make_history(samples=[make_sample(1, [1000, 2000]), make_sample(2, [])])
    first, second = csv.DictReader(io.StringIO(build_csv(history)))
    assert tuple(first) == CSV_COLUMNS
    assert (first["at"], first["requests_total"]) == ("1769965513.0", "1000")
    assert (first["requests_ended"], first["ok"], first["rate_rps"]) == ("2", "2", "2.0")
    assert (first["p50_ms"], second["p50_ms"], second["requests_ended"]) == ("1.0", "", "0")
    # Csv has the state of the run in each line.
    samples = [make_sample(second) for second in range(1, 6)]
    events = [
        Event(at=samples[1].at - 0.5, type=EventType.STATE, text="", state=RunState.RUNNING),
        Event(at=samples[2].at - 0.5, type=EventType.WORKER_JOINED, text=""),
        Event(at=samples[4].at - 0.1, type=EventType.STATE, text="", state=RunState.COMPLETED),
    ]
    rows = csv.DictReader(io.StringIO(build_csv(make_history(samples=samples, events=events))))
    assert [row["state"] for row in rows] == ["", "running", "running", "running", "completed"]
    # Csv names every outcome. Columns have the order of the outcomes.
    assert [name for name in CSV_COLUMNS if name in set(OUTCOMES)] == list(OUTCOMES)
    # Hgrm covers the whole run. Its latencies are in ms.
    text = build_hgrm_text(make_history())
    assert "Total count    =         1000]" in text
    assert text.splitlines()[2].split()[0] == "1.000"
    # Latencies have their exact minimum and maximum. The histogram alone does not know them.
    latency = LATENCY.decode(make_history().summary)
    assert (latency.min_us, latency.max_us, latency.total) == (1000, 10_990, 1000)
    # Json has no secrets. Only the first line can contain any, and its other fields stay as they were.
    history = make_history()
    spec = {"header": ["Authorization: secret"]}
    head = {"at": 1.0, "summary": history.summary, "spec": spec, "extent": history.extent}
    masked = msgspec.json.decode(mask_head(msgspec.json.encode(head)[:-1]) + b"}")
    assert masked["spec"] == {"header": ["Authorization: ***"]}
    assert masked["summary"] == msgspec.to_builtins(history.summary)
