import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import read

from oku_coordinator.ledger.storage.storage_health import STEADY_S, StorageFault, StorageHealth
from oku_coordinator.watches.storage_watch import IDLE_S, StorageWatch


class World:
    """A ledger that nobody writes, with its watch and a clock."""

    def __init__(self, path: Path) -> None:
        self.now = 0.0
        self.faults: list[StorageFault] = []
        self.ledger = open_ledger(path, storage=StorageHealth(self.faults.append, lambda: self.now))
        self.watch = StorageWatch(self.ledger, lambda: self.now)

    def set_read_only(self, *, is_on: bool) -> None:
        """Let no change succeed, or let them again."""
        read(self.ledger, lambda transaction: transaction.execute(f"PRAGMA query_only = {int(is_on)}"))

    def look(self, after_s: float) -> str:
        """What is wrong after so many seconds more."""
        self.now += after_s
        self.watch.check()
        return self.ledger.storage.trouble


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A ledger that can be used."""
    world = World(tmp_path / "ledger.sqlite3")
    yield world
    world.ledger.close()


def test_an_idle_ledger_is_tested(world: World) -> None:
    """A fault is detected before a run needs the ledger."""
    world.set_read_only(is_on=True)
    assert world.look(IDLE_S - 0.1) == ""
    assert "read-only" in world.look(0.1)


def test_the_end_of_a_fault_is_detected(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The ledger is tested each second; the beginning and the end are logged once each."""
    caplog.set_level(logging.INFO, "oku_coordinator.watches.storage_watch")
    world.set_read_only(is_on=True)
    for _ in range(3):
        assert world.look(IDLE_S)
    world.set_read_only(is_on=False)
    assert world.look(STEADY_S - 0.1)
    assert world.look(0.1) == ""
    assert len(world.faults) == 3
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "the ledger cannot be used: it may not be written" in caplog.text


def test_a_ledger_in_use_is_not_tested(world: World) -> None:
    """Each test costs a sync of the disk."""
    assert world.look(IDLE_S) == ""
    assert world.ledger.storage.written_at == IDLE_S
    assert world.look(IDLE_S - 0.1) == ""
    assert world.ledger.storage.written_at == IDLE_S
