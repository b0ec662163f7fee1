"""The schema of the ledger, and the opening of its file.

The tables are in schema.sql. SQLite is in WAL mode with full synchronisation: a commit that was acknowledged
survives the process and the machine. One process writes at a time; it holds a `FileLock` as long as it lives.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from oku_coordinator.ledger.storage.storage_health import find_storage_error
from oku_core.errors import UserError
from oku_core.process.private_files import (
    FileLock,
    make_data_folder,
    prepare_private_file,
    tighten_private_file,
)

APPLICATION_ID = int.from_bytes(b"OKU1")
"""Marks the file as a ledger (PRAGMA application_id); those from before 0.1 have none."""
VERSION = 4
"""The version of the tables, stored in the file. It rises with each change of them."""
_TOTALS = """
WITH counts AS (
    SELECT run, json_extract(spec, '$.shares_concurrency') AS is_total, max(1, coalesce(
        json_extract(spec, '$.workers'),
        (SELECT count(*) FROM workers WHERE workers.run = specs.run)
    )) AS workers
    FROM specs
)
UPDATE specs SET spec = json_remove(json_set(
    spec,
    '$.concurrency',
    json_extract(spec, '$.concurrency') * iif(is_total, 1, workers),
    '$.connections', json_extract(spec, '$.connections') * workers
), '$.shares_concurrency')
FROM counts WHERE counts.run = specs.run;
"""
"""Turns the concurrency and the connections of each worker into totals of the run."""
UPGRADES: dict[int, str] = {
    2: "ALTER TABLE failed ADD COLUMN reasons BLOB;"
    " ALTER TABLE failed_sizes ADD COLUMN reason_runs INTEGER NOT NULL DEFAULT 0;"
    " ALTER TABLE retries ADD COLUMN unjudged INTEGER NOT NULL DEFAULT 0;",
    3: _TOTALS,
}
"""SQL that upgrades the tables from a version to the next; ledgers of other versions are rejected."""

_SCHEMA = Path(__file__).with_name("schema.sql")
_TABLES_BEFORE = {"runs", "slices", "leases"}
"""Tables that a ledger from before 0.1 has in any version."""
_BESIDE = ("-wal", "-shm")
BUSY_TIMEOUT_S = 10.0


def open_database(
    path: Path, *, read_only: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S
) -> sqlite3.Connection:
    """Open the ledger's file: a new one gets its tables, an older one is upgraded if possible.

    Args:
        path: the file.
        read_only: whether to open it read-only.
        busy_timeout_s: how long to wait for another process that writes.

    Raises:
        UserError: the file is not a ledger, or has a version that this Oku does not read. Such a file is left
            as it is. An older ledger is not upgraded if it is opened read-only.
    """
    try:
        version = _read_version(path)
        _check_version(path, version, read_only=read_only)
        _close_to_others(path)
        database = _connect(path, timeout=busy_timeout_s)
        try:
            _prepare(database, version, read_only=read_only)
        except BaseException:
            database.close()
            raise
    except sqlite3.OperationalError as error:
        raise UserError(f"{path}: the ledger cannot be used: {find_storage_error(error) or error}") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: is not a ledger: {error}") from error
    return database


def _read_version(path: Path) -> int:
    """Read the version of a ledger without changing the file; 0 without a file, or without tables.

    Raises:
        UserError: the file is a database, but not a ledger that this Oku could read.
    """
    if not path.is_file() or path.stat().st_size == 0:
        return 0
    with closing(_connect(f"{path.absolute().as_uri()}?{_find_read_mode(path)}", uri=True)) as database:
        application_id = database.execute("PRAGMA application_id").fetchone()[0]
        if application_id == APPLICATION_ID:
            return int(database.execute("PRAGMA user_version").fetchone()[0])
        tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_schema")}
    if not tables and application_id == 0:
        return 0  # a coordinator was killed while it created the file
    if application_id == 0 and tables >= _TABLES_BEFORE:
        raise UserError(f"{path}: made before Oku 0.1: {_describe_remedy(path)}")
    raise UserError(f"{path}: is not a ledger: it is the database of another program")


def _find_read_mode(path: Path) -> str:
    """The parameters of SQLite's URI that leave the file and its side files unchanged.

    For an immutable file, SQLite ignores the WAL; for one with a WAL, it creates a missing index.
    """
    wal = path.with_name(f"{path.name}-wal")
    return "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"


def _check_version(path: Path, version: int, *, read_only: bool) -> None:
    if version == 0:
        if read_only:
            raise UserError(f"{path}: there is no ledger")
        return
    is_version = f"{path}: the ledger has version {version}, this Oku reads version {VERSION}"
    if version > VERSION:
        raise UserError(f"{is_version}: use the newer Oku that wrote it")
    if any(step not in UPGRADES for step in range(version, VERSION)):
        raise UserError(f"{is_version}: {_describe_remedy(path)}")
    if read_only and version < VERSION:
        raise UserError(f"{is_version}: upgrade it with `oku runs`, or start a coordinator on it")


def _describe_remedy(path: Path) -> str:
    # The folder of a local run can be moved; of a volume, only the contents can.
    return f"read it with the commit that wrote it, or move the contents of {path.absolute().parent} away"


def _connect(
    database: Path | str, *, timeout: float = BUSY_TIMEOUT_S, uri: bool = False
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database, isolation_level=None, check_same_thread=False, timeout=timeout, uri=uri
    )
    connection.row_factory = sqlite3.Row
    return connection


def _prepare(database: sqlite3.Connection, version: int, *, read_only: bool) -> None:
    if read_only:
        database.execute("PRAGMA query_only = ON")
        return
    if version == 0:
        # Only effective in a file without tables; lets the space of deleted runs be freed later.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    if version != VERSION:
        steps = [UPGRADES[step] for step in range(version, VERSION)] if version else [_SCHEMA.read_text()]
        database.executescript(
            f"BEGIN; {''.join(steps)}"
            f" PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )


def _close_to_others(path: Path) -> None:
    """Create the file unless it exists; SQLite gives its side files the same mode."""
    try:
        prepare_private_file(path)
        for suffix in _BESIDE:
            tighten_private_file(path.with_name(path.name + suffix))
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error


def lock_ledger(path: Path, wait_s: float = 0.0, *, trusts_folder: bool = False) -> FileLock:
    """Acquire the right to write the ledger at `path`; its folder is created.

    Raises:
        UserError: another process holds it, or other users may write the untrusted folder.
    """
    try:
        make_data_folder(path.parent, is_trusted=trusts_folder)
        return FileLock(path.with_suffix(".lock"), wait_s)
    except BlockingIOError:
        raise UserError(f"{path}: another coordinator holds this ledger") from None
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
