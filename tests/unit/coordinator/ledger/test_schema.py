import sqlite3
from pathlib import Path

import pytest

from oku_coordinator.ledger.schema import _VERSION, FileLock, lock_ledger, open_database
from oku_core.errors import UserError


def test_a_new_ledger_is_durable_and_has_its_tables(path: Path) -> None:
    """Every commit is synchronised, and readers do not hold the writer up."""
    database = open_database(path)
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {"runs", "slices", "leases", "strays", "workers", "flags", "processes", "outbox"} < tables
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
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(
        UserError, match=rf"ledger\.sqlite3: is of version 99, this Oku reads version {_VERSION}"
    ):
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
    with pytest.raises(UserError, match="No such file or directory"):
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
    with pytest.raises(UserError, match="file: Not a directory"):
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


SPEC = '{"requests":1}'
_BACK = {
    7: "DROP TABLE deletions; DROP INDEX outbox_of_runs;",
    6: """
        DROP INDEX listed_runs;
        ALTER TABLE runs DROP COLUMN engine; ALTER TABLE runs DROP COLUMN target;
    """,
    5: """
        DROP TABLE histories; DROP INDEX live_runs; DROP INDEX owing_runs; DROP INDEX losable_lines;
        DROP TABLE specs; ALTER TABLE runs ADD COLUMN spec TEXT NOT NULL DEFAULT '{}';
    """,
    4: "ALTER TABLE clocks DROP COLUMN newest_ns; ALTER TABLE outbox DROP COLUMN told_ns;",
    3: "DROP TABLE servers;",
    2: """
        DROP TABLE moments; DROP TABLE events; DROP TABLE outbox; DROP TABLE outbox_size; DROP TABLE clocks;
        DROP INDEX expired_leases;
        ALTER TABLE runs DROP COLUMN is_published; ALTER TABLE runs DROP COLUMN owes_summary;
    """,
    1: """
        DROP TABLE processes; DROP INDEX pending_slices;
        ALTER TABLE runs DROP COLUMN bytes_received_high; ALTER TABLE runs DROP COLUMN sum_us_high;
        ALTER TABLE runs DROP COLUMN is_broken;
    """,
}
"""What each version does not have that the next one has."""


@pytest.mark.parametrize("version", sorted(_BACK))
def test_a_ledger_of_an_older_version_is_brought_up_to_date(path: Path, version: int) -> None:
    """With what it has; whoever only reads leaves it as it is."""
    new = open_database(path)
    tables = list_schema(new)
    new.close()
    old = sqlite3.connect(path)
    for step in range(max(_BACK), version - 1, -1):
        old.executescript(_BACK[step])
    # From version 6 on, the spec has a table of its own.
    spec = ", spec" if version < 6 else ""
    old.execute(
        f"INSERT INTO runs (run, name, requests, state, queued_at, created_at, outcomes{spec})"
        f" VALUES ('r1', '', 1, 'failed', 0, 0, '[]'{', :spec' if spec else ''})",
        {"spec": SPEC},
    )
    if not spec:
        old.execute("INSERT INTO specs VALUES ('r1', :spec)", {"spec": SPEC})
    old.execute(f"PRAGMA user_version = {version}")
    old.commit()
    old.close()
    with pytest.raises(UserError, match=f"is of version {version}, this Oku reads version {_VERSION}"):
        open_database(path, read_only=True)
    database = open_database(path)
    assert list_schema(database) == tables
    row = database.execute("SELECT sum_us_high, is_broken, is_published FROM runs").fetchone()
    assert tuple(row) == (0, int(version == 1), 0)
    assert database.execute("SELECT spec FROM specs WHERE run = 'r1'").fetchone()[0] == SPEC
    database.close()


def list_schema(database: sqlite3.Connection) -> set[tuple[str, str, tuple[str, ...]]]:
    """Tables with their columns, and indices."""
    rows = database.execute("SELECT type, name FROM sqlite_master").fetchall()
    return {
        (kind, name, tuple(sorted(row[1] for row in database.execute(f"PRAGMA table_info({name})"))))
        for kind, name in rows
    }
