"""The tables of the ledger, and how its file is opened.

SQLite in WAL mode with full synchronisation: a commit that was acknowledged survives the process and the
machine. One process writes at a time; it holds a `FileLock` for as long as it lives.
"""

import sqlite3
from pathlib import Path

from oku_coordinator.ledger.storage.account_schema import ACCOUNT_TABLES
from oku_coordinator.ledger.storage.failure_schema import FAILURE_TABLES
from oku_coordinator.ledger.storage.file_schema import FILE_TABLES
from oku_coordinator.ledger.storage.hook_schema import HOOK_TABLES, LIVE_RUNS
from oku_coordinator.ledger.storage.inner_schema import INNER_TABLES
from oku_coordinator.ledger.storage.key_schema import KEY_TABLES
from oku_coordinator.ledger.storage.lease_schema import LEASE_TABLES
from oku_coordinator.ledger.storage.run_schema import QUEUE_COLUMNS, RESTED_RUNS
from oku_coordinator.ledger.storage.schedule_schema import SCHEDULE_TABLES
from oku_coordinator.ledger.storage.storage_health import explain_error
from oku_coordinator.ledger.storage.threshold_schema import STRETCH_COLUMNS, THRESHOLD_TABLES
from oku_coordinator.ledger.storage.timing_schema import TIMING_COLUMNS
from oku_coordinator.ledger.storage.upgrades import UPGRADES, teach
from oku_core.errors import UserError
from oku_core.process.private_files import prepare_private_file, tighten_private_file

VERSION = 17
"""Of the tables, kept in the file. Each change of them gets a new one, and a step in `UPGRADES`."""

_TABLES = (
    """
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    requests INTEGER NOT NULL,
    engine TEXT NOT NULL DEFAULT 'aiohttp',          -- what a list says of the spec
    target TEXT NOT NULL DEFAULT '',                 -- and this: scheme, host and port of the first URL
    load TEXT NOT NULL DEFAULT '',                   -- and this, in words
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    queued_at REAL NOT NULL,                         -- when it last went to the end of the queue
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    active_s REAL NOT NULL DEFAULT 0,                -- closed periods of activity
    active_since REAL,                               -- begin of the open period
    periods INTEGER NOT NULL DEFAULT 0,
    last_checkpoint_at REAL,
    last_ended_at REAL,                              -- when the last request ended that was told of
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    count_name TEXT NOT NULL DEFAULT '',             -- under which delay servers count its requests
    served INTEGER,
    watched_s REAL NOT NULL DEFAULT 0,               -- seconds of workers in which the window could be full
    underfilled_s REAL NOT NULL DEFAULT 0,           -- those of them in which it was not
    drops_in_flight INTEGER NOT NULL DEFAULT 0,      -- it is cancelled, and its requests get no grace
    outcomes TEXT NOT NULL,                          -- the sum of those of its accounts
    is_broken INTEGER NOT NULL DEFAULT 0,            -- its account did not balance
    is_published INTEGER NOT NULL DEFAULT 0,         -- its lines go to the outbox
    owes_summary INTEGER NOT NULL DEFAULT 0          -- it is at rest without a summary
);
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX listed_runs ON runs (created_at);
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each checkpoint: it may be large
);
CREATE TABLE slices (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
"""
    + LEASE_TABLES
    + ACCOUNT_TABLES
    + SCHEDULE_TABLES
    + FAILURE_TABLES
    + THRESHOLD_TABLES
    + STRETCH_COLUMNS
    + FILE_TABLES
    + TIMING_COLUMNS
    + INNER_TABLES
    + HOOK_TABLES
    + LIVE_RUNS
    + KEY_TABLES
    + QUEUE_COLUMNS
    + RESTED_RUNS
    + """
CREATE TABLE workers (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    cpu_s REAL NOT NULL DEFAULT 0,
    peak_rss_mb REAL NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, worker)
) WITHOUT ROWID;
CREATE TABLE processes (
    run TEXT NOT NULL,
    process TEXT NOT NULL,
    peak_mb REAL NOT NULL,
    PRIMARY KEY (run, process)
) WITHOUT ROWID;
CREATE TABLE servers (
    run TEXT NOT NULL,
    store TEXT NOT NULL,              -- where a delay server of the run counts
    seen_at REAL NOT NULL,
    PRIMARY KEY (run, store)
) WITHOUT ROWID;
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    samples INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- samples are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0,    -- and those by then will be
    published_to REAL NOT NULL DEFAULT 0,   -- samples that end by then are in lines
    late_lines INTEGER NOT NULL DEFAULT 0   -- how many lines had counts that came after those of their second
) WITHOUT ROWID;
CREATE TABLE samples (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Sample, packed; its outcomes are in the series
    state TEXT NOT NULL DEFAULT '',   -- of the run
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    body BLOB NOT NULL                -- an Event, packed
);
CREATE INDEX events_of_runs ON events (run);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    line TEXT NOT NULL,
    is_late INTEGER,                  -- into which stream it goes; decided when it is first sent
    sent_ns INTEGER                   -- its time by the wall clock, decided then as well
);
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('latency', 'worker', 'coverage');
CREATE INDEX outbox_of_runs ON outbox (run);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO outbox_size VALUES (0, 0);
CREATE TABLE streams (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL,               -- of the newest line
    newest_ns INTEGER NOT NULL DEFAULT 0,   -- of the newest line that was sent, by the wall clock
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
CREATE TABLE deletions (
    run TEXT PRIMARY KEY              -- is in `runs` no more, and is being removed from the other tables
) WITHOUT ROWID;
"""
)
_BESIDE = ("-wal", "-shm")
BUSY_TIMEOUT_S = 10.0


def open_database(
    path: Path, *, read_only: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S
) -> sqlite3.Connection:
    """Open the ledger's file: a new one gets its tables, an older one is upgraded.

    Args:
        path: where it is.
        read_only: whether nothing is to be written.
        busy_timeout_s: how long to wait for another process that writes.

    Raises:
        UserError: the file is not a ledger, or has a version that this Oku does not read. Whoever opens it
            read-only cannot read an older one either.
    """
    if read_only and not path.exists():
        raise UserError(f"{path}: there is no ledger")
    _close_to_others(path)
    try:
        database = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=busy_timeout_s
        )
        try:
            _prepare(database, path, read_only=read_only)
        except BaseException:
            database.close()
            raise
    except sqlite3.OperationalError as error:
        raise UserError(f"{path}: the ledger cannot be used: {explain_error(error) or error}") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: is not a ledger: {error}") from error
    return database


def _prepare(database: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    database.row_factory = sqlite3.Row
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version:
        _check_version(path, version, read_only=read_only)
    if read_only:
        if version == 0:
            raise UserError(f"{path}: there is no ledger")
        database.execute("PRAGMA query_only = ON")
        return
    if version == 0:
        # Works on a file without tables only, and lets the space of deleted runs be given back later.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    if version != VERSION:
        teach(database)
        steps = "".join(UPGRADES[step] for step in range(version, VERSION)) if version else _TABLES
        database.executescript(f"BEGIN; {steps} PRAGMA user_version = {VERSION}; COMMIT;")


def _check_version(path: Path, version: int, *, read_only: bool) -> None:
    is_version = f"{path}: the ledger has version {version}, this Oku reads version {VERSION}"
    if version > VERSION:
        raise UserError(f"{is_version}: use the newer Oku that wrote it")
    if version < min(UPGRADES):
        raise UserError(
            f"{is_version} and upgrades from version {min(UPGRADES)}: move the file away to begin a new one"
        )
    if read_only and version < VERSION:
        raise UserError(f"{is_version}: upgrade it with `oku runs`, or start a coordinator on it")


def _close_to_others(path: Path) -> None:
    """Make the file unless it is there; the files that SQLite puts beside it get the same mode."""
    try:
        prepare_private_file(path)
        for suffix in _BESIDE:
            tighten_private_file(path.with_name(path.name + suffix))
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
