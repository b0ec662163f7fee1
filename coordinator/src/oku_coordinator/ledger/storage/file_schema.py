"""The table that says which runs use which files; the files themselves stand beside the ledger."""

FILE_TABLES = """
CREATE TABLE run_files (
    run TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, digest)
) WITHOUT ROWID;
CREATE INDEX runs_of_files ON run_files (digest);
"""
