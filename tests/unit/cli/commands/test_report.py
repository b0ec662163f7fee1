import json
from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change
from tests.unit.cli.command_line import call_oku

from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a run in its data folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".oku").mkdir()
    ledger = open_ledger(tmp_path / ".oku" / "ledger.sqlite3")
    change(ledger, create_run, "r1", Spec(requests=5), 1.0)
    ledger.close()
    return tmp_path


def test_a_report_is_a_page_in_the_current_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """`-o` names another file."""
    assert call_oku(monkeypatch, "report", "r1") == 0
    assert (folder / "oku-report-r1.html").read_text().startswith("<!DOCTYPE html>")
    assert call_oku(monkeypatch, "report", "r1", "-o", "other.html") == 0
    assert (folder / "other.html").exists()


def test_only_what_was_asked_for_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """A script that wants numbers wants no page."""
    assert call_oku(monkeypatch, "report", "r1", "--json", "--csv", "a.csv", "--hgrm", "a.hgrm") == 0
    assert {path.name for path in folder.iterdir()} == {".oku", "a.csv", "a.hgrm"}
    assert json.loads(capsys.readouterr().out)["summary"]["run"] == "r1"
    assert (folder / "a.csv").read_text().startswith("at,state,seconds,requests_total,")
    assert "Percentile" in (folder / "a.hgrm").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r2"], "oku: .oku: there is no run r2"),
        (["../r1"], "oku: .oku: there is no run ../r1"),
        (["r1", "--data-dir", "nowhere"], "oku: nowhere: there are no runs yet, start one with: oku run"),
        (["r1", "-o", "no/x.html"], "oku: --output: no/x.html is not a file that can be written"),
        (["r1", "--csv", "-", "--json"], "oku: --json and --csv: only one of them can go to standard output"),
        (
            ["r1", "--json", "a.json"],
            "oku: --json: prints to standard output and takes no file; redirect it: ",
        ),
        (["r1", "--coordinator", "http://h"], "oku: --token: a remote coordinator asks for a token"),
    ],
)
def test_wrong_input_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    arguments: list[str],
    message: str,
) -> None:
    """The exit code is 2, and nothing is written."""
    assert call_oku(monkeypatch, "report", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert len(captured.err.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == [".oku"]


def test_a_pipeline_gets_its_files_of_any_run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As `oku run` would have written them."""
    assert call_oku(monkeypatch, "report", "r1", "--junit", "a.xml", "--summary-markdown", "a.md") == 0
    assert {path.name for path in folder.iterdir()} == {".oku", "a.xml", "a.md"}
    assert "<testsuites" in (folder / "a.xml").read_text()
    assert (folder / "a.md").read_text().startswith("## run r1: paused")
