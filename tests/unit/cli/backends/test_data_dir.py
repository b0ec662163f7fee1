from pathlib import Path

import pytest

from oku_cli.backends.data_dir import DEFAULT, DataDir
from oku_cli.remote.endpoint import Endpoint
from oku_core.errors import UserError

ENDPOINT = Endpoint("http://127.0.0.1:1", "token")


def test_a_command_names_the_folder_when_it_is_not_the_usual() -> None:
    """The command can be typed as it stands."""
    assert DataDir(DEFAULT).flags == []
    assert DataDir(DEFAULT / "x").flags == ["--data-dir", ".oku/x"]


def test_one_stack_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    """The second is refused until the first has released the folder."""
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    first.hold()
    with pytest.raises(UserError, match="another run holds this data folder"):
        second.hold()
    first.release()
    second.hold()
    second.release()


def test_the_stack_of_a_folder_can_be_found(tmp_path: Path) -> None:
    """Its address can be read while it runs, and only then; its token is readable by its owner alone."""
    folder = DataDir(tmp_path)
    assert folder.find_endpoint() is None
    folder.hold()
    with pytest.raises(UserError, match="is being started or ended"):
        folder.find_endpoint()
    folder.write_stack(ENDPOINT, {"broker": 7})
    found = DataDir(tmp_path).find_endpoint()
    assert found == ENDPOINT
    assert found.flags == ["--data-dir", str(tmp_path)]
    assert folder.stack_file.stat().st_mode & 0o777 == 0o600
    folder.release()
    assert DataDir(tmp_path).find_endpoint() is None


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """The error is one line and gives the reason."""
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match="file/data: Not a directory"):
        DataDir(tmp_path / "file" / "data").hold()


def test_a_stack_keeps_its_key(tmp_path: Path) -> None:
    """Only its user can read it; the broker may still hold messages of a stack that was killed."""
    folder = DataDir(tmp_path)
    folder.keep_message_key()
    key = folder.message_key.read_text()
    folder.keep_message_key()
    assert (folder.message_key.read_text(), len(key)) == (key, 64)
    assert folder.message_key.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [folder.message_key]
