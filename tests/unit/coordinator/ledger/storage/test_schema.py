import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kit.coordinators.transactions import change, read

from oku_coordinator.ledger import Ledger
from oku_coordinator.ledger.rules.failed_requests import FailedSpan, read_failed
from oku_coordinator.ledger.rules.lifecycle import create_run
from oku_coordinator.ledger.storage import schema
from oku_coordinator.ledger.storage.records import RetryRecord
from oku_coordinator.ledger.storage.schema import VERSION, lock_ledger, open_database
from oku_coordinator.ledger.tables.submission_table import fetch_retry
from oku_core.accounting.outcome import OTHER, Outcome
from oku_core.errors import UserError
from oku_core.spec.spec import Spec, decode_spec, encode_spec


def test_a_new_ledger_is_durable_and_has_its_tables(path: Path) -> None:
    """Every commit is synchronised, and readers do not hold the writer up."""
    database = open_database(path)
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {
        "runs",
        "slices",
        "leases",
        "lease_parts",
        "series",
        "workers",
        "flags",
        "processes",
        "outbox",
    } < tables
    database.close()


def test_a_ledger_is_opened_again_as_it_is(path: Path) -> None:
    """Its tables are made once."""
    first = open_database(path)
    first.execute("INSERT INTO flags VALUES ('r1', 'resent', 1, 0)")
    first.close()
    second = open_database(path)
    assert second.execute("SELECT count(*) FROM flags").fetchone()[0] == 1
    second.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_a_newer_version_is_refused(path: Path, *, read_only: bool) -> None:
    """The message says which version the ledger has, which one is read, and what to do."""
    open_database(path).close()
    set_version(path, 99)
    refusal = f"{path}: the ledger has version 99, this Oku reads version {VERSION}: use the newer Oku that"
    with left_alone(path), pytest.raises(UserError, match=f"^{re.escape(refusal)}"):
        open_database(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_an_older_ledger_that_cannot_be_upgraded_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, read_only: bool
) -> None:
    """Where a version has no step to the next one, the ledger is left as it is."""
    open_database(path).close()
    monkeypatch.setattr(schema, "VERSION", VERSION + 1)
    way_out = f"read it with the commit that wrote it, or move the contents of {path.parent} away"
    refusal = f"{path}: the ledger has version {VERSION}, this Oku reads version {VERSION + 1}: {way_out}"
    with left_alone(path), pytest.raises(UserError, match=f"^{re.escape(refusal)}$"):
        open_database(path, read_only=read_only)


def test_an_older_ledger_is_upgraded_by_whoever_may_write_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step leads to each version; a reader names the command that takes them, and changes nothing."""
    with closing(Ledger(path)) as ledger:
        change(ledger, create_run, "r1", Spec(requests=10), 1.0)
    monkeypatch.setattr(schema, "VERSION", VERSION + 2)
    steps = ("ALTER TABLE runs ADD COLUMN colour TEXT;", "UPDATE runs SET colour = 'red';")
    monkeypatch.setattr(schema, "UPGRADES", dict(enumerate(steps, VERSION)))
    with left_alone(path), pytest.raises(UserError, match="upgrade it with `oku runs`, or start a coord"):
        open_database(path, read_only=True)
    for read_only in (False, True):
        with closing(open_database(path, read_only=read_only)) as database:
            assert database.execute("SELECT run, colour FROM runs").fetchone()[:] == ("r1", "red")
            assert database.execute("PRAGMA user_version").fetchone()[0] == VERSION + 2


def test_a_concurrency_of_each_worker_becomes_the_total(path: Path) -> None:
    """A run that goes on after the upgrade keeps its load: by the workers that it asks for, or has had."""
    old: dict[str, dict[str, Any]] = {
        "asks": {"concurrency": 50, "workers": 4, "shares_concurrency": False},
        "had": {"concurrency": 50, "connections": 5, "workers": None, "shares_concurrency": False},
        "new": {"concurrency": 50, "workers": None, "shares_concurrency": False},
        "users": {"concurrency": 50, "workers": 4, "shares_concurrency": True},
    }
    with closing(open_database(path)) as database:
        for run, changes in old.items():
            values = json.loads(encode_spec(Spec())) | changes
            database.execute("INSERT INTO specs (run, spec) VALUES (?, ?)", (run, json.dumps(values)))
        for worker in ("w1", "w2", "w3"):
            database.execute("INSERT INTO workers (run, worker) VALUES ('had', ?)", (worker,))
        database.execute("PRAGMA user_version = 3")
    with closing(open_database(path)) as database:
        rows = database.execute("SELECT run, spec FROM specs").fetchall()
    specs = {row["run"]: decode_spec(row["spec"]) for row in rows}
    found = {run: (spec.concurrency, spec.connections) for run, spec in specs.items()}
    assert found == {
        "asks": (200, None), "had": (150, 15), "new": (50, None), "users": (50, None),
    }  # fmt: skip


def test_a_ledger_of_version_2_is_upgraded(path: Path) -> None:
    """The reasons of its failures are not known."""
    with closing(Ledger(path)) as ledger:
        change(ledger, create_run, "r1", Spec(requests=10), 1.0)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "DROP TABLE failed; CREATE TABLE failed (id INTEGER PRIMARY KEY, run, name, outcome, start, wave,"
            " body);"
            "DROP TABLE failed_sizes; CREATE TABLE failed_sizes (run, ranges); PRAGMA user_version = 2;"
            "DROP TABLE retries; CREATE TABLE retries (run, retried, origin, requests, ok, unlisted);"
            "INSERT INTO failed VALUES (1, 'r1', '', 'timeout', 3, NULL, X'920302');"
            "INSERT INTO failed_sizes VALUES ('r1', 1);"
            "INSERT INTO retries VALUES ('r1', 'r0', 'r0', 9, 8, 0);"
        )
    with closing(Ledger(path)) as ledger:
        assert read(ledger, lambda t: [*read_failed(t, "r1")]) == [
            FailedSpan(3, 5, Outcome.TIMEOUT, "", OTHER)
        ]
        assert read(ledger, fetch_retry, "r1") == RetryRecord("r0", "r0", 9, 8, 0, 0)


def test_an_upgrade_that_fails_leaves_the_ledger_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its steps are one transaction."""
    open_database(path).close()
    monkeypatch.setattr(schema, "VERSION", VERSION + 2)
    steps = ("ALTER TABLE runs ADD COLUMN colour TEXT;", "UPDATE nowhere SET colour = 'red';")
    monkeypatch.setattr(schema, "UPGRADES", dict(enumerate(steps, VERSION)))
    with pytest.raises(UserError, match="the ledger cannot be used: no such table: nowhere"):
        open_database(path)
    monkeypatch.undo()
    with closing(open_database(path)) as database:
        assert "colour" not in {row["name"] for row in database.execute("PRAGMA table_info(runs)")}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [8, 17])
def test_a_ledger_from_before_0_1_is_refused(path: Path, version: int, *, read_only: bool) -> None:
    """Nothing of it is changed, not even its mode; the message names the real folder."""
    make_old_ledger(path, version).close()
    path.chmod(0o644)
    with left_alone(path), pytest.raises(UserError, match=f"^{re.escape(build_refusal(path))}$"):
        open_database(path, read_only=read_only)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("read_only", [False, True])
def test_a_killed_ledger_from_before_0_1_keeps_what_is_in_its_log_alone(
    path: Path, tmp_path: Path, *, read_only: bool
) -> None:
    """SQLite would move it into the file; of a young one, all of it is there, the tables included."""
    with closing(make_old_ledger(tmp_path / "living", 17)):
        for suffix in ("", "-wal"):
            path.with_name(path.name + suffix).write_bytes((tmp_path / f"living{suffix}").read_bytes())
    assert int.from_bytes(path.read_bytes()[60:64]) == 0, "the version is in the log"
    with left_alone(path), pytest.raises(UserError, match=re.escape(build_refusal(path))):
        open_database(path, read_only=read_only)


def test_a_killed_ledger_is_opened_though_all_of_it_is_in_its_log(path: Path, tmp_path: Path) -> None:
    """A coordinator may die before SQLite moves anything into the file."""
    with closing(open_database(tmp_path / "living")) as living:
        living.execute("INSERT INTO flags VALUES ('r1', 'resent', 1, 0)")
        for suffix in ("", "-wal"):
            path.with_name(path.name + suffix).write_bytes((tmp_path / f"living{suffix}").read_bytes())
    with closing(open_database(path, read_only=True)) as database:
        assert database.execute("SELECT count(*) FROM flags").fetchone()[0] == 1


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("application_id", [0, 0x42])
@pytest.mark.parametrize("version", [0, 17])
def test_the_database_of_another_program_is_not_a_ledger(
    path: Path, application_id: int, version: int, *, read_only: bool
) -> None:
    """It gets no tables of ours."""
    with closing(sqlite3.connect(path)) as other:
        other.executescript(
            f"CREATE TABLE runs (pace REAL); PRAGMA application_id = {application_id};"
            f" PRAGMA user_version = {version};"
        )
    with left_alone(path), pytest.raises(UserError, match="is not a ledger: it is the database of another"):
        open_database(path, read_only=read_only)


def test_a_folder_is_not_a_ledger(path: Path) -> None:
    """The error is one line."""
    path.mkdir()
    with pytest.raises(UserError, match=f"^{re.escape(str(path))}: is not a regular file"):
        open_database(path)


def build_refusal(path: Path) -> str:
    """The line about a ledger from before 0.1."""
    way_out = f"read it with the commit that wrote it, or move the contents of {path.parent} away"
    return f"{path}: made before Oku 0.1: {way_out}"


def make_old_ledger(path: Path, version: int) -> sqlite3.Connection:
    """Make what is known of all ledgers from before 0.1: three tables, a version, and no application id."""
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA journal_mode = WAL; BEGIN; CREATE TABLE runs (run TEXT); CREATE TABLE slices (run TEXT);"
        f" CREATE TABLE leases (id TEXT); INSERT INTO runs VALUES ('r1'); PRAGMA user_version = {version};"
        " COMMIT;"
    )
    return database


def set_version(path: Path, version: int) -> None:
    """Set the version of a ledger."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")


@contextmanager
def left_alone(path: Path) -> Iterator[None]:
    """The file and its log stay as they are, to the byte."""
    before = read_files(path)
    yield
    assert read_files(path) == before


def read_files(path: Path) -> list[bytes | None]:
    """The content of a ledger's file and of its log, which may be missing."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return [file.read_bytes() if file.exists() else None for file in files]


def test_a_file_that_is_not_a_database_is_not_a_ledger(path: Path) -> None:
    """The file is left as it is."""
    path.write_bytes(b"a text of more than a hundred bytes " * 10)
    with pytest.raises(UserError, match="is not a ledger: file is not a database"):
        open_database(path)
    assert path.read_bytes().startswith(b"a text")


@pytest.mark.parametrize("content", [None, b""])
def test_there_is_nothing_to_read_where_no_ledger_was_made(path: Path, content: bytes | None) -> None:
    """There may be no file, or an empty one that a coordinator left when it was killed at its start."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="there is no ledger"):
        open_database(path, read_only=True)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """The error is one line."""
    with pytest.raises(UserError, match="No such file or directory"):
        open_database(tmp_path / "nowhere" / "ledger.sqlite3")


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
