import os
from pathlib import Path

import pytest

from oku_cli.process.isolation import build_environment, drop_own, find_program


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
