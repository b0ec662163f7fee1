"""The tables of leases and of what has come of them while they are open."""

LEASE_TABLES = """
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    start INTEGER NOT NULL,                 -- its first index
    stop INTEGER NOT NULL,                  -- the index behind its last one
    length INTEGER NOT NULL,                -- less than what lies between them if it has several ranges
    worker TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    cut_at REAL NOT NULL,
    closed_at REAL,
    "limit" INTEGER NOT NULL,               -- all positions are places in its ranges
    "end" INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    in_flight TEXT NOT NULL DEFAULT '[]',
    covered INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    outcomes TEXT NOT NULL,
    figures TEXT NOT NULL DEFAULT '[]',
    resent INTEGER NOT NULL DEFAULT 0,      -- how many of its requests may have been sent in vain
    wave INTEGER,                           -- of an open run: the first coordinate of its wave
    lane INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX active_leases ON leases (run) WHERE state = 'active';
CREATE INDEX resent_leases ON leases (run) WHERE resent > 0;
CREATE TABLE lease_ranges (
    lease TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    ranges TEXT NOT NULL                    -- of a lease with several of them
) WITHOUT ROWID;
CREATE TABLE lease_parts (
    lease TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    requests INTEGER NOT NULL,
    body BLOB NOT NULL,                     -- a Part of an open lease, packed
    PRIMARY KEY (lease, phase, name)
) WITHOUT ROWID;
"""
