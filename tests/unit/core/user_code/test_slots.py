"""The memory that a worker shares with its host."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from oku_core.user_code.slots import MOST_SLOTS, Slots, create_slots


def test_both_sides_see_when_an_iteration_began() -> None:
    """Each has its own object of the same memory."""
    file = create_slots()
    worker, host = Slots(file), Slots(file)
    os.close(file)
    host.start(MOST_SLOTS - 1, 7)
    assert (worker.begun_ns(MOST_SLOTS - 1), worker.begun_ns(0)) == (7, 0)
    worker.clear(MOST_SLOTS - 1)
    assert host.begun_ns(MOST_SLOTS - 1) == 0
    worker.close()
    host.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such memory")
def test_user_code_cannot_take_the_memory_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by filling the disk of temporary files, nor by making the file shorter: a worker would die."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    file = create_slots()
    with pytest.raises(PermissionError):
        os.truncate(file, 0)
    os.close(file)
