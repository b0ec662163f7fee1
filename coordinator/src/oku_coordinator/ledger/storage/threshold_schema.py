"""The table of what is known of thresholds beside the account: losses, and worst stretches."""

THRESHOLD_TABLES = """
CREATE TABLE thresholds (
    run TEXT NOT NULL,
    ordinal INTEGER NOT NULL,               -- its place among those of the spec, from 0
    lost_at REAL,                           -- when it was seen to be lost for certain
    worst REAL,                             -- of one over some seconds in a row: the worst of these
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;
"""
STRETCH_COLUMNS = """
-- Since version 14, of one over some seconds in a row: the first of these in which it did not hold.
ALTER TABLE thresholds ADD COLUMN lost_value REAL;
ALTER TABLE thresholds ADD COLUMN lost_phase TEXT;
ALTER TABLE thresholds ADD COLUMN lost_clock_s REAL;
ALTER TABLE thresholds ADD COLUMN longest_s REAL NOT NULL DEFAULT 0;  -- the longest row that was looked at
"""
