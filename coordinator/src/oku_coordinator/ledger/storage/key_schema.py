"""The table of the keys with which runs were submitted, since version 16; it outlives the runs."""

KEY_TABLES = """
CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,                   -- of the spec that was submitted with it
    run TEXT NOT NULL,
    deleted_at REAL,                        -- when the run was deleted; NULL while it is there
    summary BLOB                            -- of a deleted run: how it stood, as JSON
) WITHOUT ROWID;
CREATE INDEX keys_of_runs ON idempotency_keys (run);
CREATE INDEX keys_of_deleted_runs ON idempotency_keys (deleted_at) WHERE deleted_at IS NOT NULL;
"""
