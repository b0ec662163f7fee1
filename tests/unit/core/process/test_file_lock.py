from pathlib import Path

import pytest

from oku_core.process.file_lock import FileLock


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restarted coordinator waits until the old one has gone."""
    held = FileLock(tmp_path / "lock")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.release()

    monkeypatch.setattr("oku_core.process.file_lock.time.sleep", pause)
    FileLock(tmp_path / "lock", wait_s=60.0).release()
    assert len(pauses) == 1
