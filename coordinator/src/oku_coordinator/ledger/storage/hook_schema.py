"""What ledgers have since version 13: the hooks of scenarios, `setup` and `teardown`."""

HOOK_TABLES = """
CREATE TABLE hooks (
    run TEXT NOT NULL,
    hook TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,     -- the number of the newest call
    tries INTEGER NOT NULL DEFAULT 0,       -- calls since the run began, or was resumed after a failure
    worker TEXT NOT NULL DEFAULT '',        -- whom the newest call was given to
    incarnation TEXT NOT NULL DEFAULT '',
    since REAL NOT NULL DEFAULT 0,          -- when that was, or since when a teardown is owed
    ended_at REAL,
    error TEXT NOT NULL DEFAULT '',
    traceback TEXT NOT NULL DEFAULT '',
    end_state TEXT NOT NULL DEFAULT '',     -- of a teardown: the state of the run after it
    end_reason TEXT NOT NULL DEFAULT '',
    value TEXT NOT NULL DEFAULT 'null',     -- what it returned; may be large, so it comes last
    PRIMARY KEY (run, hook)
) WITHOUT ROWID;
"""

LIVE_RUNS = """
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'tearing_down', 'pending');
"""
"""The runs that have a turn, or wait for it."""
