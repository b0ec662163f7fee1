from pathlib import Path

import pytest

from oku_coordinator.ledger.storage.file_lock import FileLock, lock_ledger
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


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restarted coordinator waits until the old one has gone."""
    held = FileLock(tmp_path / "lock")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.release()

    monkeypatch.setattr("oku_coordinator.ledger.storage.file_lock.time.sleep", pause)
    FileLock(tmp_path / "lock", wait_s=60.0).release()
    assert len(pauses) == 1
