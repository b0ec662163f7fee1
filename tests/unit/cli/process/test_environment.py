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


def test_search_paths_lose_what_is_relative_to_the_working_directory() -> None:
    """An empty entry means that folder, too; absolute entries stay."""
    given = {"PYTHONPATH": ":/a:b:/c:.", "LD_LIBRARY_PATH": ":", "HOME": "/home/me"}

    assert build_environment(given) == {"PYTHONPATH": "/a:/c", "HOME": "/home/me"}


def test_what_is_set_for_others_does_not_reach_a_child() -> None:
    """Celery would take its broker from the shell, and Django's settings from the working directory."""
    given = {"OKU_HOST": "*", "CELERY_BROKER_URL": "redis://production", "DJANGO_SETTINGS_MODULE": "shop"}

    assert build_environment(given) == {}


def test_what_is_meant_for_every_process_reaches_a_child() -> None:
    """A run without extensions uses none in any process, and one that is debugged has no closed process."""
    for name in ("OKU_NO_EXTENSIONS", "OKU_DEBUGGABLE"):
        assert build_environment({name: "yes"}) == drop_own({name: "yes"}) == {name: "yes"}


def test_another_program_gets_no_key_of_oku() -> None:
    """What else a user has set is for it, as for any program that he starts himself."""
    given = {"OKU_TOKEN": "t", "CELERY_BROKER_URL": "redis://", "PATH": "bin", "DJANGO_DEBUG": "1"}
    assert drop_own(given) == {"PATH": "bin", "DJANGO_DEBUG": "1"}


def test_files_are_absolute_for_a_child_that_works_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificates that OpenSSL trusts are an example."""
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
