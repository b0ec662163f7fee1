import os
from pathlib import Path

import pytest

from oku_cli.local.stack_socket import StackSocket
from oku_core.broker.socket_url import LONGEST_PATH
from oku_core.errors import UserError


def test_the_socket_lies_in_the_folder_if_its_path_is_short(tmp_path: Path) -> None:
    """Only its owner can open it. What a killed stack left there is replaced."""
    left = StackSocket(tmp_path)
    found = StackSocket(tmp_path)
    assert left.path == found.path == tmp_path / "workers.sock"
    assert found.path.stat().st_mode & 0o777 == 0o600
    left.listening.close()
    found.close()
    assert not found.path.exists()
    assert tmp_path.is_dir()


def test_a_folder_whose_path_is_too_long_does_not_have_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a temporary folder whose path is too long, if there is another."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 120)))
    found = StackSocket(tmp_path / ("long" * 30))
    assert len(os.fsencode(found.path)) <= LONGEST_PATH
    assert not found.path.is_relative_to(tmp_path)
    found.close()
    assert not found.path.parent.exists()


def test_without_any_folder_for_the_socket_the_error_names_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one line, with the option and the variable that help."""

    def refuse(**_: object) -> str:
        raise PermissionError

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(UserError, match="has at most 90 bytes: choose one with --data-dir or TMPDIR"):
        StackSocket(tmp_path / ("x" * 120))
