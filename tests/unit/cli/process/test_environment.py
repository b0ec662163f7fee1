import os
import sys
from pathlib import Path

import pytest

from oku_cli.process.environment import (
    build_environment,
    drop_own,
    enter_utf8_mode,
    find_program,
    find_terminal_encoding,
)


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


def test_in_an_ascii_locale_the_command_restarts_in_utf_8_mode(
    exec_: Exec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are nearly all, and a command should start at once."""
    for encoding in ["utf-8", "iso8859-1"]:
        monkeypatch.setattr("sys.getfilesystemencoding", lambda encoding=encoding: encoding)
        enter_utf8_mode()
        assert exec_.commands == []
        assert find_terminal_encoding() is None
    # In an ascii locale the command restarts in utf 8 mode.
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


def test_the_environment_of_a_child_has_nothing_of_ours_and_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty entry means that folder, too; absolute entries stay."""
    given = {"PYTHONPATH": ":/a:b:/c:.", "LD_LIBRARY_PATH": ":", "HOME": "/home/me"}
    assert build_environment(given) == {"PYTHONPATH": "/a:/c", "HOME": "/home/me"}
    # What is set for others does not reach a child.
    given = {"OKU_HOST": "*", "CELERY_BROKER_URL": "redis://production", "DJANGO_SETTINGS_MODULE": "shop"}
    assert build_environment(given) == {}
    # What is meant for every process reaches a child.
    for name in ("OKU_NO_EXTENSIONS", "OKU_DEBUGGABLE"):
        assert build_environment({name: "yes"}) == drop_own({name: "yes"}) == {name: "yes"}
    # Another program gets no key of oku.
    given = {"OKU_TOKEN": "t", "CELERY_BROKER_URL": "redis://", "PATH": "bin", "DJANGO_DEBUG": "1"}
    assert drop_own(given) == {"PATH": "bin", "DJANGO_DEBUG": "1"}
    # Files are absolute for a child that works in another folder.
    monkeypatch.chdir(tmp_path)
    environment = build_environment({"SSL_CERT_FILE": "ca.pem", "SSL_CERT_DIR": "/certs", "OPENSSL_CONF": ""})
    assert environment["SSL_CERT_FILE"] == str(tmp_path / "ca.pem")
    assert environment["SSL_CERT_DIR"] == "/certs"
    assert environment["OPENSSL_CONF"] == ""


def test_no_program_of_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dot or an empty entry in the PATH is ignored; an absolute entry counts."""
    (tmp_path / "program").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}/nowhere")
    assert find_program("program") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("program") == str(tmp_path / "program")
