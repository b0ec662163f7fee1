"""What ledgers have since version 12: why requests failed, which, and the runs that try them again."""

FAILURE_TABLES = """
-- Why those failed that are not ok, and of each reason how many.
ALTER TABLE accounts ADD COLUMN reasons TEXT NOT NULL DEFAULT '[]';
CREATE TABLE failed (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    outcome TEXT NOT NULL,
    start INTEGER NOT NULL,                 -- the first coordinate
    wave BLOB,                              -- of an open run: the wave that they lie in, packed
    body BLOB NOT NULL                      -- ranges of coordinates, packed
);
CREATE INDEX failed_of_runs ON failed (run, start);
CREATE TABLE failed_sizes (
    run TEXT PRIMARY KEY,
    ranges INTEGER NOT NULL                 -- how many its rows in failed have
) WITHOUT ROWID;
CREATE TABLE retries (
    run TEXT PRIMARY KEY,
    retried TEXT NOT NULL,                  -- the run whose failed requests it sends
    origin TEXT NOT NULL,                   -- the first run of them all
    requests INTEGER NOT NULL,              -- how many that one has
    ok INTEGER NOT NULL,                    -- how many of them were ok before this run
    unlisted INTEGER NOT NULL               -- how many had failed and are not known
) WITHOUT ROWID;
"""
