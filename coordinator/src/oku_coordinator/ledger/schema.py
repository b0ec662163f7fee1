"""The tables of the ledger, and how its file is opened.

SQLite in WAL mode with full synchronisation: a commit that was acknowledged survives the process and the
machine. One process writes at a time; it holds a lock on a file beside the ledger for as long as it lives.
"""

import fcntl
import os
import sqlite3
import time
from pathlib import Path

from oku_core.errors import UserError
from oku_core.process.private_files import (
    make_private_folder,
    open_private,
    prepare_private_file,
    tighten_private_file,
)

_VERSION = 8

_TABLES = """
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,               -- moved to a table of its own by version 6
    requests INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    queued_at REAL NOT NULL,          -- when it was submitted or resumed: its place in the queue
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    active_s REAL NOT NULL DEFAULT 0, -- closed windows of activity
    active_since REAL,                -- begin of the open window
    windows INTEGER NOT NULL DEFAULT 0,
    last_report_at REAL,
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    served INTEGER,
    outcomes TEXT NOT NULL,
    statuses TEXT NOT NULL DEFAULT '{}',
    bytes_received INTEGER NOT NULL DEFAULT 0,
    sum_us INTEGER NOT NULL DEFAULT 0,
    min_us INTEGER NOT NULL DEFAULT 0,
    max_us INTEGER NOT NULL DEFAULT 0,
    histogram BLOB,
    bytes_received_high INTEGER NOT NULL DEFAULT 0,  -- what is beyond 62 bits, here and in sum_us
    sum_us_high INTEGER NOT NULL DEFAULT 0,
    is_broken INTEGER NOT NULL DEFAULT 0             -- its account did not balance
);
CREATE TABLE slices (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    cut_at REAL NOT NULL,
    execution TEXT,
    worker TEXT,
    incarnation TEXT,
    closed_at REAL,
    covered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX active_leases ON leases (run) WHERE state = 'active';
CREATE TABLE strays (
    lease TEXT NOT NULL,
    execution TEXT NOT NULL,
    PRIMARY KEY (lease, execution)
) WITHOUT ROWID;
CREATE TABLE workers (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    cpu_s REAL NOT NULL DEFAULT 0,
    peak_rss_mb REAL NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, worker)
) WITHOUT ROWID;
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
"""


_PROCESSES = """
CREATE TABLE processes (
    run TEXT NOT NULL,
    process TEXT NOT NULL,
    peak_mb REAL NOT NULL,
    PRIMARY KEY (run, process)
) WITHOUT ROWID;
"""
_HISTORY = """
CREATE TABLE moments (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Sample, packed
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
    is_late INTEGER                   -- into which stream it goes; decided when it is first sent
);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO outbox_size VALUES (0, 0);
CREATE TABLE clocks (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL,         -- of the newest line
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
CREATE INDEX expired_leases ON leases (run) WHERE state = 'expired';
ALTER TABLE runs ADD COLUMN is_published INTEGER NOT NULL DEFAULT 0;   -- its lines go to the outbox
ALTER TABLE runs ADD COLUMN owes_summary INTEGER NOT NULL DEFAULT 0;   -- is at rest without a summary
"""
_SERVERS = """
CREATE TABLE servers (
    run TEXT NOT NULL,
    store TEXT NOT NULL,              -- where a delay server of the run counts
    seen_at REAL NOT NULL,
    PRIMARY KEY (run, store)
) WITHOUT ROWID;
"""
_LINE_TIMES = """
ALTER TABLE clocks ADD COLUMN newest_ns INTEGER NOT NULL DEFAULT 0;  -- of what was sent, by the wall clock
ALTER TABLE outbox ADD COLUMN told_ns INTEGER;  -- its time by the wall clock; decided when it is first sent
"""
_LONG_LIFE = """
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    moments INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- moments are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0     -- and those by then will be
) WITHOUT ROWID;
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'pending');
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('tick', 'latency', 'worker', 'coverage');
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each report: it may be large
);
INSERT INTO histories (run, moments, events)
    SELECT run, (SELECT count(*) FROM moments WHERE moments.run = runs.run),
        (SELECT count(*) FROM events WHERE events.run = runs.run) FROM runs;
INSERT INTO specs SELECT run, spec FROM runs;
ALTER TABLE runs DROP COLUMN spec;
"""
_LISTS = """
ALTER TABLE runs ADD COLUMN engine TEXT NOT NULL DEFAULT 'aiohttp';    -- what a list says of the spec
ALTER TABLE runs ADD COLUMN target TEXT NOT NULL DEFAULT '';           -- likewise: scheme, host and port
CREATE INDEX listed_runs ON runs (created_at);
UPDATE runs SET engine = coalesce((SELECT json_extract(spec, '$.engine') FROM specs
    WHERE specs.run = runs.run), engine);
"""
_DELETIONS = """
CREATE TABLE deletions (
    run TEXT PRIMARY KEY              -- is in `runs` no more, and is being removed from the other tables
) WITHOUT ROWID;
CREATE INDEX outbox_of_runs ON outbox (run);
"""
_FROM_VERSION_1 = """
ALTER TABLE runs ADD COLUMN bytes_received_high INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN sum_us_high INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
ALTER TABLE runs ADD COLUMN is_broken INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET is_broken = 1 WHERE state = 'failed';
"""


_STEPS = ("", _FROM_VERSION_1 + _PROCESSES, _HISTORY, _SERVERS, _LINE_TIMES, _LONG_LIFE, _LISTS, _DELETIONS)
"""What leads from each version to the next."""


_BESIDE = ("-wal", "-shm")


class FileLock:
    """An advisory lock on a file that ends with the process that holds it.

    Raises:
        BlockingIOError: another process held it for all of `wait_s`.
    """

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        self._file = open_private(path, os.O_CREAT | os.O_RDWR)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self.release()
                    raise
                time.sleep(0.05)
            else:
                return

    def release(self) -> None:
        """Give it up."""
        os.close(self._file)


def lock_ledger(path: Path, wait_s: float = 0.0, *, trusts_folder: bool = False) -> FileLock:
    """The right to write the ledger at `path`, whose folder is made.

    Raises:
        UserError: another process has it, or others may write the folder, unless it is to be trusted.
    """
    try:
        make_private_folder(path.parent, is_trusted=trusts_folder)
        return FileLock(path.with_suffix(".lock"), wait_s)
    except BlockingIOError:
        raise UserError(f"{path}: another coordinator holds this ledger") from None
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the ledger's file, making its tables when it is new, and what is missing when it is older.

    Raises:
        UserError: the file is no ledger, or one of a version that this Oku does not read; who only reads
            does not read an older one either.
    """
    if read_only and not path.exists():
        raise UserError(f"{path}: there is no ledger")
    _close_to_others(path)
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        database.row_factory = sqlite3.Row
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in range(_VERSION + 1) or (read_only and 0 < version < _VERSION):
            raise UserError(f"{path}: is of version {version}, this Oku reads version {_VERSION}")
        if read_only:
            if version == 0:
                raise UserError(f"{path}: there is no ledger")
            database.execute("PRAGMA query_only = ON")
            return database
        if version == 0:
            # Holds for a file without tables only, and gives the space of deleted runs back later.
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if version != _VERSION:
            steps = "".join(_STEPS[version:] if version else (_TABLES, _PROCESSES, *_STEPS[2:]))
            database.executescript(f"BEGIN; {steps} PRAGMA user_version = {_VERSION}; COMMIT;")
    except sqlite3.OperationalError as error:
        raise UserError(f"{path}: cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: is no ledger: {error}") from error
    return database


def _close_to_others(path: Path) -> None:
    """Make the file unless it is there; what SQLite puts beside it gets the mode that it has."""
    try:
        prepare_private_file(path)
        for suffix in _BESIDE:
            tighten_private_file(path.with_name(path.name + suffix))
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
