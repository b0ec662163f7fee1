from pathlib import Path

import pytest

from oku_core.errors import UserError
from oku_core.process.ready_file import remove_ready_file, write_ready_file


def test_the_ready_file_has_the_address_in_one_line(tmp_path: Path) -> None:
    """The file replaces an earlier one, and no temporary file remains."""
    path = tmp_path / "ready"
    path.write_text("10.0.0.1:1\n")
    write_ready_file(path, "127.0.0.1:8080")
    assert path.read_text() == "127.0.0.1:8080\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_of_an_earlier_server_is_removed(tmp_path: Path) -> None:
    """A parent that waits for the file never finds an old address; a missing file is not an error."""
    path = tmp_path / "ready"
    path.write_text("10.0.0.1:1\n")
    for _ in range(2):
        remove_ready_file(path)
        assert not path.exists()


def test_a_ready_file_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    """A missing folder is the user's mistake."""
    path = tmp_path / "none" / "ready"
    with pytest.raises(UserError, match=rf"^--ready-file: {path} cannot be written: No such file"):
        write_ready_file(path, "127.0.0.1:8080")


def test_a_ready_file_that_cannot_be_replaced_is_named_with_the_reason(tmp_path: Path) -> None:
    """A folder in place of the file is the user's mistake."""
    with pytest.raises(UserError, match=rf"^--ready-file: {tmp_path} cannot be replaced: "):
        remove_ready_file(tmp_path)
