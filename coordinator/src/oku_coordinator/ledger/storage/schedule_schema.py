"""The tables of runs whose requests have due times, or that end at a time."""

SCHEDULE_TABLES = """
CREATE TABLE active_periods (
    run TEXT NOT NULL,
    ordinal INTEGER NOT NULL,               -- from 1: how often the run has begun or gone on
    starts_at REAL NOT NULL,
    offset_s REAL NOT NULL,                 -- what the schedule's clock says at its start
    stop_s REAL,                            -- and at its end; none while it is open
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;
CREATE TABLE schedules (
    run TEXT PRIMARY KEY,
    waves INTEGER NOT NULL,                 -- how many were cut
    next_block INTEGER NOT NULL             -- of the schedule: the first one that is in no wave
) WITHOUT ROWID;
CREATE TABLE waves (
    run TEXT NOT NULL,
    begin INTEGER NOT NULL,                 -- the first coordinate
    body BLOB NOT NULL,                     -- a Wave, packed
    PRIMARY KEY (run, begin)
) WITHOUT ROWID;
"""
