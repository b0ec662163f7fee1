"""How long runs were queued, and the index that finds the runs that came to rest lately."""

QUEUE_COLUMNS = """
ALTER TABLE runs ADD COLUMN queued_s REAL NOT NULL DEFAULT 0;  -- time in the queue before `queued_at`
"""
RESTED_RUNS = """
CREATE INDEX rested_runs ON runs (state, coalesce(ended_at, last_checkpoint_at))
    WHERE state IN ('paused', 'completed', 'cancelled', 'failed');
"""
"""The runs at rest by state, with the time since when: that of its end, or of a pause the last checkpoint."""
