import subprocess
import sys

import click
import pytest
from tests.unit.cli.command_line import call_oku

from oku_cli.main import COMMANDS, oku
from oku_core.errors import UserError

MEANT = {
    "rnu": "No such command 'rnu', did you mean run?",
    "rum": "No such command 'rum', did you mean run or rm?",
    "workers": "No such command 'workers', did you mean worker?",
    "attack": "No such command 'attack'; oku --help lists all",
    "http://h/": "No such command 'http://h/'; test a URL with: oku run http://h/",
    "run --request 5": "No such option '--request', did you mean --requests?",
    "run --concurency=3": "No such option '--concurency', did you mean --concurrency?",
    "run h.py --run-time 10s": "No such option '--run-time': --duration is the time after which a run ends",
    "run --rps=5 http://127.0.0.1/": "No such option '--rps': --rate sets the rate of requests",
    "run --vus 50": "No such option '--vus': -c is the number of requests in flight",
    "runs -z": "No such option '-z'.",
}


def test_what_was_meant_is_suggested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nearest command or option, or what Oku has for a flag of other load generators."""
    codes = {line: call_oku(monkeypatch, *line.split()) for line in MEANT}
    assert capsys.readouterr().err.splitlines() == [f"oku: {said}" for said in MEANT.values()]
    assert codes == dict.fromkeys(MEANT, 2)


def test_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has the first sentence of each command's own help, as a shell has."""
    assert call_oku(monkeypatch, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    offered = {item.value: item.help for item in oku.shell_complete(click.Context(oku), "")}
    for name in COMMANDS:
        command = oku.get_command(click.Context(oku), name)
        own = command.get_short_help_str(limit=1000) if command else None
        assert f" {name} {own} " in shown
        assert offered[name] == own
    # What pods run stands under a heading of its own. Users of the command need not know of it.
    assert " completes words. Processes, as pods run them: server Run " in shown
    assert "oku run http://" in shown
    # No arguments show the help. A user who types `oku` alone wants to see the commands.
    assert call_oku(monkeypatch) == 0
    assert capsys.readouterr().out.startswith("Usage: oku")


def test_a_command_ends_at_once_with_all_of_its_output() -> None:
    """Python frees nothing and calls nothing, which would take up to 80 ms; the exit code stays."""
    code = "import atexit, oku_cli.__main__ as start; atexit.register(print, 'late'); start.main()"
    for word, exit_code, output in (("--version", 0, "oku "), ("nope", 2, "")):
        ended = subprocess.run(
            [sys.executable, "-c", code, word], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout[:4], "late" in ended.stdout) == (exit_code, output, False)
        assert bool(ended.stderr) is bool(exit_code)


def test_wrong_words_are_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Click's usage text is left out."""
    for arguments in [("rum",), ("run", "--nope"), ("show",), ("pause", "a", "b")]:
        assert call_oku(monkeypatch, *arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("oku: ")
        assert len(captured.err.splitlines()) == 1

    # A users mistake has no traceback. It does not matter which part of Oku found the mistake.
    def fail(**_: object) -> None:
        raise UserError("spec.yaml: x: y is not z")

    monkeypatch.setattr("oku_cli.main.oku.main", fail)
    assert call_oku(monkeypatch) == 2
    assert capsys.readouterr().err == "oku: spec.yaml: x: y is not z\n"
