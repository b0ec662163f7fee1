import json
import re
from pathlib import Path

import msgspec
import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change
from tests.kit.runs.seconds import draw_seconds
from tests.unit.cli.command_line import call_oku

from oku_coordinator.ledger.rules.history import keep_second
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.spec.spec import Spec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two runs in its data folder of which only seconds are known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".oku").mkdir()
    ledger = open_ledger(tmp_path / ".oku" / "ledger.sqlite3")
    for seed, run in enumerate(("r1", "r2")):
        change(ledger, create_run, run, Spec(requests=5 + seed), 1.0)
        for sample in draw_seconds(40, seed=seed)[0]:
            change(
                ledger, keep_second, run, msgspec.structs.replace(sample, outcomes=[0] * len(sample.outcomes))
            )
    ledger.close()
    return tmp_path


def test_two_runs_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """As text with a page beside it, or as JSON with both summaries and their differences."""
    assert call_oku(monkeypatch, "compare", "r1", "r2", "--html", "c.html") == 0
    assert "A and B are not judged by each other" in capsys.readouterr().out
    assert (folder / "c.html").read_text().startswith("<!DOCTYPE html>")
    assert call_oku(monkeypatch, "compare", "r1", "r2", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["a"]["run"], document["b"]["run"]) == ("r1", "r2")
    assert document["verdict"] == "not_comparable"
    assert document["differences"] == [{"key": "requests", "a": 5, "b": 6}]


def test_a_pipeline_fails_for_runs_that_are_slower_or_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 and the reason is on standard error; --allow-undecided lets unjudged runs pass."""
    assert call_oku(monkeypatch, "compare", "r1", "r2", "--fail-if", "slower") == 1
    assert capsys.readouterr().err == "oku: --fail-if slower: A and B are not judged by each other\n"
    assert call_oku(monkeypatch, "compare", "r1", "r2", "--fail-if", "slower", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "not_comparable"
    assert call_oku(monkeypatch, "compare", "r1", "r2", "--fail-if", "slower", "--allow-undecided") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r1", "r3"], "oku: .oku: there is no run r3"),
        (["r1", "r2", "--despite", "urk"], "oku: --despite: urk is not a key of a spec, such as url"),
        (["r1", "r2", "--html", "no/c.html"], "oku: --html: no/c.html is not a file that can be written"),
        (
            ["r1", "r2", "--json", "--html", "-"],
            "oku: --json and --html: only one of them can go to standard",
        ),
        (["r1", "r2", "--json", "c.json"], "oku: --json: prints to standard output and takes no file"),
        (["r1", "r2", "--fail-if", "faster"], "oku: Invalid value for '--fail-if': 'faster' is not 'slower'"),
        (["r1"], "oku: Missing argument 'B'"),
    ],
)
def test_wrong_input_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Nothing is written, and the exit code is 2."""
    assert call_oku(monkeypatch, "compare", *arguments) == 2
    assert re.match(re.escape(message), capsys.readouterr().err)
