from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read
from tests.unit.cli.command_line import call_oku

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.tables.run_table import fetch_runs
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with runs in its data folder: two that are over, and one that is paused."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / ".oku"
    data.mkdir(mode=0o700)
    ledger = open_ledger(data / "ledger.sqlite3")
    for index, run in enumerate(("r1", "r2", "r3")):
        change(ledger, create_run, run, Spec(requests=5), float(index))
        change(ledger, change_state, run, RunState.PAUSED if run == "r3" else RunState.CANCELLED, 5.0)
    ledger.close()
    (data / "reports").mkdir(mode=0o700)
    for run in ("r1", "r2"):
        (data / "reports" / f"{run}.html").write_text("page")
    return data


def list_runs(folder: Path) -> list[str]:
    """The names of all runs, newest first."""
    ledger = Ledger(folder / "ledger.sqlite3", read_only=True)
    try:
        return [listed.run for listed in read(ledger, fetch_runs)]
    finally:
        ledger.close()


def test_runs_are_deleted_with_their_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """Several can be named at once, paused ones among them."""
    assert call_oku(monkeypatch, "rm", "r1", "r3", "r1") == 0
    assert capsys.readouterr().out == "run r1 is deleted\nrun r3 is deleted\n"
    assert list_runs(folder) == ["r2"]
    assert [path.name for path in (folder / "reports").iterdir()] == ["r2.html"]


def test_what_cannot_be_deleted_is_one_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """The others are deleted, and the exit code is 2."""
    assert call_oku(monkeypatch, "rm", "r9", "r2", "r8") == 2
    captured = capsys.readouterr()
    assert captured.out == "run r2 is deleted\n"
    first, second = captured.err.splitlines()
    assert first.startswith("oku: .oku: there is no run r9")
    assert second.startswith("oku: .oku: there is no run r8")
    assert list_runs(folder) == ["r3", "r1"]
    assert call_oku(monkeypatch, "rm") == 2


def test_a_list_is_as_long_as_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note says whether there are more."""
    assert call_oku(monkeypatch, "runs", "--limit", "2") == 0
    captured = capsys.readouterr()
    assert [line.split()[0] for line in captured.out.splitlines()] == ["run", "r3", "r2"]
    assert captured.err == "these are the newest 2; --all lists all of them\n"
    assert call_oku(monkeypatch, "runs", "--all") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 4
    assert captured.err == ""
