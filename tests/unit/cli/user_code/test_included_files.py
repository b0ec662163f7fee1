from pathlib import Path

import pytest

from oku_cli.user_code.included_files import MOST_FILES, MOST_TOTAL_BYTES, check_total, list_included
from oku_core.errors import UserError


def test_a_file_is_included_alone(tmp_path: Path) -> None:
    """Also one that would be left out of a folder."""
    (tmp_path / ".env").write_text("")
    assert list_included(tmp_path / ".env", "x") == [tmp_path / ".env"]


def test_a_folder_is_included_without_caches_and_hidden_files(tmp_path: Path) -> None:
    """Nobody wants them, and hidden ones may be secrets."""
    for name in ("b.json", "a/c.txt", ".git/x", ".env", "__pycache__/m.pyc", "m.pyc", "a/node_modules/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list_included(tmp_path, "x") == [tmp_path / "a" / "c.txt", tmp_path / "b.json"]


def test_a_folder_of_nothing_or_of_too_much_is_refused(tmp_path: Path) -> None:
    """Each file stands in the spec."""
    with pytest.raises(UserError, match=r"^x: has no files$"):
        list_included(tmp_path, "x")
    for number in range(MOST_FILES + 1):
        (tmp_path / str(number)).touch()
    with pytest.raises(UserError, match=r"^x: has more than 1,000 files$"):
        list_included(tmp_path, "x")


def test_user_code_has_a_bound() -> None:
    """Each worker has a copy of all of it."""
    check_total(MOST_TOTAL_BYTES, MOST_FILES, "x")
    with pytest.raises(UserError, match=r"^x: with what it imports and includes these are 1,001 files, "):
        check_total(0, MOST_FILES + 1, "x")
    with pytest.raises(UserError, match=r"^x: with what it imports and includes these are 256 MiB, "):
        check_total(MOST_TOTAL_BYTES + 1, 1, "x")
