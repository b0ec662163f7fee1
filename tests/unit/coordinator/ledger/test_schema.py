import sqlite3
from pathlib import Path

import pytest

from oku_coordinator.ledger.schema import FileLock, lock_ledger, open_database
from oku_core.errors import UserError


def test_a_new_ledger_is_durable_and_has_its_tables(path: Path) -> None:
    """Every commit is synchronised, and readers do not hold the writer up."""
    database = open_database(path)
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == {"runs", "slices", "leases", "strays", "workers", "flags", "processes"}
    database.close()


def test_a_ledger_is_opened_again_as_it_is(path: Path) -> None:
    """Its tables are made once."""
    first = open_database(path)
    first.execute("INSERT INTO flags VALUES ('r1', 'resent', 1, 0)")
    first.close()
    second = open_database(path)
    assert second.execute("SELECT count(*) FROM flags").fetchone()[0] == 1
    second.close()


def test_a_ledger_of_another_version_is_not_touched(path: Path) -> None:
    """The message says which version it is and which one is read."""
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 7")
    other.close()
    with pytest.raises(UserError, match=r"ledger\.sqlite3: is of version 7, this Oku reads version 2"):
        open_database(path)


def test_a_file_that_is_no_database_is_no_ledger(path: Path) -> None:
    """It is left as it is."""
    path.write_bytes(b"a text of more than a hundred bytes " * 10)
    with pytest.raises(UserError, match="is no ledger: file is not a database"):
        open_database(path)
    assert path.read_bytes().startswith(b"a text")


@pytest.mark.parametrize("content", [None, b""])
def test_there_is_nothing_to_read_where_no_ledger_was_made(path: Path, content: bytes | None) -> None:
    """Neither without a file nor with an empty one, as a coordinator leaves that was killed at its start."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="there is no ledger"):
        open_database(path, read_only=True)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """In one line."""
    with pytest.raises(UserError, match="unable to open database file"):
        open_database(tmp_path / "nowhere" / "ledger.sqlite3")


def test_a_ledger_has_one_writer(path: Path) -> None:
    """A second one is refused until the first has gone."""
    lock = lock_ledger(path)
    with pytest.raises(UserError, match="another coordinator holds this ledger"):
        lock_ledger(path)
    lock.release()
    lock_ledger(path).release()


def test_the_folder_of_a_ledger_is_made_with_its_lock(tmp_path: Path) -> None:
    """Whoever wants to write is the one who makes it."""
    path = tmp_path / "a" / "b" / "ledger.sqlite3"
    lock_ledger(path).release()
    assert path.with_suffix(".lock").exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"ledger\.sqlite3: File exists"):
        lock_ledger(tmp_path / "file" / "ledger.sqlite3")


def test_a_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that is started anew waits until the old one has gone."""
    held = FileLock(tmp_path / "lock")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.release()

    monkeypatch.setattr("oku_coordinator.ledger.schema.time.sleep", pause)
    FileLock(tmp_path / "lock", wait_s=60.0).release()
    assert len(pauses) == 1


def test_a_ledger_of_the_first_version_is_brought_up_to_date(path: Path) -> None:
    """With what it has; whoever only reads leaves it as it is."""
    open_database(path).close()
    old = sqlite3.connect(path)
    for column in ("bytes_received_high", "sum_us_high", "is_broken"):
        old.execute(f"ALTER TABLE runs DROP COLUMN {column}")
    old.execute("DROP TABLE processes")
    old.execute("DROP INDEX pending_slices")
    old.execute(
        "INSERT INTO runs (run, name, spec, requests, state, queued_at, created_at, outcomes)"
        " VALUES ('r1', '', '', 1, 'failed', 0, 0, '[]')"
    )
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()
    with pytest.raises(UserError, match="is of version 1, this Oku reads version 2"):
        open_database(path, read_only=True)
    database = open_database(path)
    row = database.execute("SELECT sum_us_high, is_broken FROM runs").fetchone()
    assert tuple(row) == (0, 1)
    assert database.execute("SELECT count(*) FROM processes").fetchone()[0] == 0
    database.close()
