"""The tables of what leases have accounted for: by phase and name, and second by second."""

ACCOUNT_TABLES = """
CREATE TABLE accounts (
    run TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    outcomes TEXT NOT NULL,
    not_sent TEXT NOT NULL,
    statuses TEXT NOT NULL,
    bytes_received INTEGER NOT NULL,        -- the lower 62 bits, as of all sums
    bytes_received_high INTEGER NOT NULL,   -- what is beyond them
    latency BLOB,                           -- a histogram; NULL if it is empty
    latency_sum_us INTEGER NOT NULL,
    latency_sum_us_high INTEGER NOT NULL,
    latency_min_us INTEGER NOT NULL,
    latency_max_us INTEGER NOT NULL,
    response_time BLOB,
    response_time_sum_us INTEGER NOT NULL DEFAULT 0,
    response_time_sum_us_high INTEGER NOT NULL DEFAULT 0,
    response_time_min_us INTEGER NOT NULL DEFAULT 0,
    response_time_max_us INTEGER NOT NULL DEFAULT 0,
    lateness BLOB,
    lateness_sum_us INTEGER NOT NULL DEFAULT 0,
    lateness_sum_us_high INTEGER NOT NULL DEFAULT 0,
    lateness_min_us INTEGER NOT NULL DEFAULT 0,
    lateness_max_us INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, phase, name)
);
CREATE TABLE series (
    run TEXT NOT NULL,
    second INTEGER NOT NULL,                -- the first of those that it tells of; -1 for no known one
    seconds INTEGER NOT NULL DEFAULT 1,     -- how many they are
    outcomes TEXT NOT NULL,
    published TEXT NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    published_sent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, second)
) WITHOUT ROWID;
CREATE INDEX unpublished_series ON series (run, second)
    WHERE (outcomes != published OR sent != published_sent);
"""
