import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.kit.coordinators.transactions import change

from oku_cli.commands import report, resume, run, runs, show
from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_core.errors import UserError
from oku_core.spec.spec import Spec


@pytest.mark.parametrize("module", [run, resume, show, report, runs])
def test_json_takes_no_value_in_any_command(module: object) -> None:
    """A word has one meaning, whichever command it is given to."""
    command: click.Command = module.command  # type: ignore[attr-defined]
    options = {flag: each for each in command.params for flag in each.opts}
    option = options["--json"]
    assert isinstance(option, click.Option)
    assert option.is_flag


@pytest.mark.parametrize(
    ("command", "arguments", "hint"),
    [
        (run.command, ["--json", "-"], "--summary-json FILE"),
        (run.command, ["spec.yaml", "--json", "summary.json"], "--summary-json FILE"),
        (resume.command, ["r1", "--json", "summary.json"], "--summary-json FILE"),
        (report.command, ["r1", "--json", "r1.json"], "redirect it"),
    ],
)
def test_a_file_after_json_is_refused(command: click.Command, arguments: list[str], hint: str) -> None:
    """A summary that was meant to be written must not be read as a spec."""
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UserError)
    assert str(result.exception).startswith(f"--json: prints to standard output and takes no file; {hint}")


def test_runs_are_listed_as_json(tmp_path: Path) -> None:
    """The list is that of the API, newest first and as long as it was asked for."""
    folder = tmp_path / "data"
    result = CliRunner().invoke(runs.command, ["--json", "--data-dir", str(folder)], standalone_mode=False)
    assert json.loads(result.stdout) == []
    folder.mkdir(mode=0o700)
    ledger = Ledger(folder / "ledger.sqlite3")
    for second, name in enumerate(("r1", "r2")):
        change(ledger, create_run, name, Spec(requests=5), float(second))
    ledger.close()
    result = CliRunner().invoke(
        runs.command, ["--json", "--limit", "1", "--data-dir", str(folder)], standalone_mode=False
    )
    assert [(listed["run"], listed["requests"]) for listed in json.loads(result.stdout)] == [("r2", 5)]
    assert result.stderr == "these are the newest 1; --all lists all of them\n"
