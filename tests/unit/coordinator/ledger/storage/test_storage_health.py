import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.coordinators.fresh_ledger import open_ledger
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger.rules.lifecycle import change_state, create_run
from oku_coordinator.ledger.storage.storage_health import (
    LEAST_FREE_BYTES,
    STEADY_S,
    Space,
    StorageError,
    StorageFault,
    StorageHealth,
    find_storage_error,
    measure_space,
)
from oku_coordinator.ledger.tables.run_table import fetch_run, fetch_runs
from oku_core.accounting.run_state import RunState
from oku_core.spec.spec import Spec


class World:
    """A ledger that has a run, and a clock."""

    def __init__(self, path: Path) -> None:
        self.now = 0.0
        self.faults: list[StorageFault] = []
        self.storage = StorageHealth(self.faults.append, lambda: self.now)
        self.ledger = open_ledger(path, storage=self.storage, busy_timeout_s=0.001)
        change(self.ledger, create_run, "r1", Spec(requests=100), 0.0)

    def set(self, pragma: str) -> None:
        """Set something of the connection."""
        read(self.ledger, lambda transaction: transaction.execute(f"PRAGMA {pragma}"))

    def count_pages(self) -> int:
        """How many pages the file has."""
        return int(read(self.ledger, lambda transaction: transaction.select("PRAGMA page_count")[0][0]))

    def write_much(self) -> None:
        """Write more than what is left of the pages of a file."""
        change(self.ledger, create_run, "r2", Spec(requests=1, body="y" * 100_000), 0.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A ledger that can be used."""
    world = World(tmp_path / "ledger.sqlite3")
    yield world
    world.ledger.close()


def test_a_full_disk_has_a_reason_of_its_own_until_there_is_space(world: World) -> None:
    """What was tried in vain can be done then; nothing of it was there before."""
    world.set(f"max_page_count = {world.count_pages()}")
    with pytest.raises(StorageError, match="its disk is full"):
        world.write_much()
    assert world.storage.trouble == "its disk is full (SQLite: database or disk is full)"
    assert [row.run for row in read(world.ledger, fetch_runs)] == ["r1"]
    world.set("max_page_count = 1000000")
    world.now = STEADY_S
    world.write_much()
    assert world.storage.trouble == ""
    assert [row.run for row in read(world.ledger, fetch_runs)] == ["r2", "r1"]
    assert world.faults == [StorageFault.DISK_FULL]


def test_a_read_only_file_is_reported(world: World) -> None:
    """So is a file system that the kernel has made read-only after an error."""
    world.set("query_only = ON")
    with pytest.raises(StorageError, match="read-only"):
        world.write_much()
    with pytest.raises(StorageError):
        world.ledger.try_writing()
    assert world.faults == [StorageFault.READ_ONLY] * 2


def test_a_locked_file_is_reported(world: World, tmp_path: Path) -> None:
    """It can still be read."""
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="another process has locked it"):
        change(world.ledger, change_state, "r1", RunState.PAUSED, 1.0)
    assert read(world.ledger, fetch_run, "r1").state == RunState.PENDING
    other.execute("ROLLBACK")
    other.close()
    assert world.faults == [StorageFault.LOCKED]
    world.ledger.try_writing()


def test_every_error_of_the_file_has_a_reason() -> None:
    """SQLite has many codes for each kind (sqlite.org/rescode.html); wrong SQL is none of them."""
    expected = {
        sqlite3.SQLITE_FULL: StorageFault.DISK_FULL,
        sqlite3.SQLITE_IOERR: StorageFault.IO_ERROR,
        sqlite3.SQLITE_IOERR_WRITE: StorageFault.IO_ERROR,
        sqlite3.SQLITE_IOERR_FSYNC: StorageFault.IO_ERROR,
        sqlite3.SQLITE_IOERR_SHMSIZE: StorageFault.DISK_FULL,
        sqlite3.SQLITE_READONLY: StorageFault.READ_ONLY,
        sqlite3.SQLITE_READONLY_DBMOVED: StorageFault.READ_ONLY,
        sqlite3.SQLITE_CANTOPEN: StorageFault.NOT_OPENED,
        sqlite3.SQLITE_PERM: StorageFault.NOT_OPENED,
        sqlite3.SQLITE_BUSY: StorageFault.LOCKED,
        sqlite3.SQLITE_BUSY_SNAPSHOT: StorageFault.LOCKED,
        sqlite3.SQLITE_LOCKED: StorageFault.LOCKED,
        sqlite3.SQLITE_ERROR: None,
        sqlite3.SQLITE_SCHEMA: None,
        None: None,
    }
    found = {}
    for code in expected:
        error = sqlite3.OperationalError("said")
        if code is not None:
            error.sqlite_errorcode = code
        explained = find_storage_error(error)
        assert explained is None or str(explained).endswith(" (SQLite: said)")
        found[code] = explained and explained.fault
    assert found == expected
    assert set(filter(None, expected.values())) == set(StorageFault)


def test_wrong_sql_is_no_fault_of_the_file(world: World) -> None:
    """It is a mistake of ours, and is raised as it is."""
    with pytest.raises(sqlite3.OperationalError, match="no such table") as raised:
        read(world.ledger, lambda transaction: transaction.select("SELECT * FROM no_table"))
    assert not isinstance(raised.value, StorageError)
    assert (world.storage.trouble, world.faults) == ("", [])


def test_only_what_reaches_the_disk_ends_a_fault_and_not_at_once(world: World) -> None:
    """On a full disk a small change may succeed between two that do not, and one without rows always does."""
    with pytest.raises(StorageError), world.storage.watching():
        raise StorageError(StorageFault.DISK_FULL, "said")
    world.now = STEADY_S - 0.1
    change(world.ledger, change_state, "r1", RunState.PAUSED, 1.0)
    assert world.storage.trouble
    world.now = STEADY_S + 10.0
    change(world.ledger, lambda transaction: transaction.execute("DELETE FROM runs WHERE run = 'r7'"))
    assert world.storage.trouble
    assert world.storage.written_at == STEADY_S - 0.1
    change(world.ledger, change_state, "r1", RunState.PENDING, 2.0)
    assert world.storage.trouble == ""
    assert world.storage.written_at == world.now


def test_a_trial_writes_a_page(world: World, tmp_path: Path) -> None:
    """One that wrote nothing would succeed on any disk."""
    log = tmp_path / "ledger.sqlite3-wal"
    before = log.stat().st_size
    world.ledger.try_writing()
    assert log.stat().st_size > before
    assert [row.run for row in read(world.ledger, fetch_runs)] == ["r1"]


def test_a_disk_that_is_nearly_full_counts_as_full(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small trial write may succeed where nothing else does; if the space is unknown, the trial decides."""
    for free_bytes, trouble in (
        (LEAST_FREE_BYTES - 1, "its disk is full"),
        (LEAST_FREE_BYTES, ""),
        (0, "its disk is full"),
        (0, "its disk is full"),
        (None, ""),
    ):
        monkeypatch.setattr(
            "oku_coordinator.ledger.storage.transaction.measure_space",
            lambda _, free_bytes=free_bytes: None if free_bytes is None else Space(free_bytes, 1 << 30),
        )
        world.ledger.try_writing()
        assert world.storage.trouble == trouble
    assert world.faults == [StorageFault.DISK_FULL] * 2


def test_space_is_measured(tmp_path: Path) -> None:
    """None where it cannot be."""
    space = measure_space(tmp_path)
    assert space is not None
    assert LEAST_FREE_BYTES < space.free_bytes <= space.size_bytes
    assert measure_space(tmp_path / "nothing") is None
    assert measure_space(Path("/proc")) is None
