"""What ledgers have since version 13: inner requests of user code, and where its exceptions came from."""

INNER_TABLES = """
CREATE TABLE inner_accounts (
    run TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,                     -- what they sum to: a Part, packed
    PRIMARY KEY (run, phase, name)
) WITHOUT ROWID;
CREATE TABLE inner_parts (
    lease TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    body BLOB NOT NULL,                     -- a Part of an open lease, packed
    PRIMARY KEY (lease, phase, name)
) WITHOUT ROWID;
CREATE TABLE tracebacks (
    run TEXT NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL,                     -- the first for this reason
    PRIMARY KEY (run, reason)
) WITHOUT ROWID;
"""
