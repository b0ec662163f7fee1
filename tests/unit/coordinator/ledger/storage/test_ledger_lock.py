from pathlib import Path

import pytest

from oku_coordinator.ledger.storage.ledger_lock import lock_ledger
from oku_core.errors import UserError


def test_a_ledger_has_one_writer(path: Path) -> None:
    """A second writer is refused until the first has gone."""
    lock = lock_ledger(path)
    with pytest.raises(UserError, match="another coordinator holds this ledger"):
        lock_ledger(path)
    lock.release()
    lock_ledger(path).release()


def test_the_folder_of_a_ledger_is_made_with_its_lock(tmp_path: Path) -> None:
    """Whoever wants to write makes the folder."""
    path = tmp_path / "a" / "b" / "ledger.sqlite3"
    lock_ledger(path).release()
    assert path.with_suffix(".lock").exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """The error says so when a file is in the place of the folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: Not a directory"):
        lock_ledger(tmp_path / "file" / "ledger.sqlite3")
