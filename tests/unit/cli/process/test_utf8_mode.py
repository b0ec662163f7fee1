import sys

import pytest

from oku_cli.process.utf8_mode import enter_utf8_mode, find_terminal_encoding


class Exec:
    """Stands in for the call that would make this process another one."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def __call__(self, _: str, command: list[str]) -> None:
        """Note the command."""
        self.commands.append(command)


@pytest.fixture
def exec_(monkeypatch: pytest.MonkeyPatch) -> Exec:
    """What notes how this process would begin again."""
    noted = Exec()
    monkeypatch.setattr("os.execv", noted)
    return noted


@pytest.mark.parametrize("encoding", ["utf-8", "iso8859-1"])
def test_in_other_locales_nothing_happens(
    exec_: Exec, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """These are nearly all, and a command should start at once."""
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: encoding)
    enter_utf8_mode()

    assert exec_.commands == []
    assert find_terminal_encoding() is None


def test_in_an_ascii_locale_the_command_restarts_in_utf_8_mode(
    exec_: Exec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its arguments, and knows the encoding of the terminal."""
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    monkeypatch.setattr("sys.orig_argv", ["python", "-P", "-m", "oku_cli", "runs", "\udcff"])

    enter_utf8_mode()

    [command] = exec_.commands
    option = f"oku-encoding={sys.stdout.encoding}"
    assert command == [
        sys.executable, "-X", "utf8", "-X", option, "-P", "-m", "oku_cli", "runs", "\udcff",
    ]  # fmt: skip
    monkeypatch.setattr("sys._xoptions", {"utf8": True, "oku-encoding": "latin-1"})
    assert find_terminal_encoding() == "latin-1"


def test_a_command_that_cannot_restart_goes_on(exec_: Exec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of it works in any locale."""

    def fail(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    monkeypatch.setattr("os.execv", fail)
    enter_utf8_mode()

    monkeypatch.setattr("sys.executable", "")
    enter_utf8_mode()
    assert exec_.commands == []
