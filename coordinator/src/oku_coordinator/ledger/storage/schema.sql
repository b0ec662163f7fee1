-- The tables of the ledger. A change of them raises VERSION in schema.py.

-- Runs: their state and what is known of them as a whole.

CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    requests INTEGER NOT NULL,
    engine TEXT NOT NULL,                            -- as chosen, and why: aiohttp: needs a proxy
    target TEXT NOT NULL,                            -- in words, for lists
    load TEXT NOT NULL,                              -- described in words, for lists
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    queued_at REAL NOT NULL,                         -- when it last went to the end of the queue
    queued_s REAL NOT NULL DEFAULT 0,                -- time in the queue before `queued_at`
    started_at REAL,
    ended_at REAL,
    active_s REAL NOT NULL DEFAULT 0,                -- closed periods of activity
    active_since REAL,                               -- begin of the open period
    periods INTEGER NOT NULL DEFAULT 0,
    last_checkpoint_at REAL,
    last_ended_at REAL,                              -- when the last request ended, by the checkpoints so far
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    count_name TEXT NOT NULL DEFAULT '',             -- under which delay servers count its requests
    served INTEGER,
    watched_s REAL NOT NULL DEFAULT 0,               -- seconds of workers in which the window could be full
    underfilled_s REAL NOT NULL DEFAULT 0,           -- those of them in which it was not
    drops_in_flight INTEGER NOT NULL DEFAULT 0,      -- it is cancelled, and its requests get no grace
    outcomes TEXT NOT NULL,                          -- the sum of those of its accounts
    is_broken INTEGER NOT NULL DEFAULT 0,            -- its account did not balance
    is_published INTEGER NOT NULL DEFAULT 0,         -- its lines go to the outbox
    owes_summary INTEGER NOT NULL DEFAULT 0          -- it is at rest without a summary
);
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX listed_runs ON runs (created_at);
-- The runs that have a turn, or wait for it.
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'tearing_down', 'pending');
-- The runs at rest since their end, or since the last checkpoint before a pause.
CREATE INDEX rested_runs ON runs (state, coalesce(ended_at, last_checkpoint_at))
    WHERE state IN ('paused', 'completed', 'cancelled', 'failed');
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each checkpoint: it may be large
);
CREATE TABLE run_files (              -- the files themselves are in a folder beside the ledger
    run TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (run, digest)
) WITHOUT ROWID;
CREATE INDEX runs_of_files ON run_files (digest);
CREATE TABLE retries (
    run TEXT PRIMARY KEY,
    retried TEXT NOT NULL,            -- the run whose failed requests it sends
    origin TEXT NOT NULL,             -- the first run of the chain
    requests INTEGER NOT NULL,        -- of that first run
    ok INTEGER NOT NULL,              -- how many of them were ok before this run
    unlisted INTEGER NOT NULL,        -- how many had failed and are not known
    unjudged INTEGER NOT NULL DEFAULT 0  -- how many of a filtered retry had failed for a reason that is not kept
) WITHOUT ROWID;
CREATE TABLE idempotency_keys (       -- outlive the runs that were submitted with them
    key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,             -- of the spec that was submitted with it
    run TEXT NOT NULL,
    deleted_at REAL,                  -- when the run was deleted; NULL while it exists
    summary BLOB                      -- the last one of a deleted run, as JSON
) WITHOUT ROWID;
CREATE INDEX keys_of_runs ON idempotency_keys (run);
CREATE INDEX keys_of_deleted_runs ON idempotency_keys (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE TABLE deletions (
    run TEXT PRIMARY KEY              -- no longer in `runs`; its other rows are being removed
) WITHOUT ROWID;

-- Where the requests of a run are: pending, leased or accounted.

CREATE TABLE slices (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    start INTEGER NOT NULL,                 -- its first index
    stop INTEGER NOT NULL,                  -- the index behind its last one
    length INTEGER NOT NULL,                -- less than `stop - start` if it has several ranges
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
    untouched TEXT NOT NULL DEFAULT '[]',   -- those of them that were certainly never sent
    reported_end INTEGER NOT NULL,          -- the end, as its worker knows it
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
CREATE TABLE inner_parts (
    lease TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    body BLOB NOT NULL,                     -- a Part of an open lease, packed
    PRIMARY KEY (lease, phase, name)
) WITHOUT ROWID;

-- What leases have accounted for: by phase and name, second by second, and which requests failed.

CREATE TABLE accounts (
    run TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    outcomes TEXT NOT NULL,
    not_sent TEXT NOT NULL,
    statuses TEXT NOT NULL,
    reasons TEXT NOT NULL DEFAULT '[]',     -- why requests failed, and how many for each reason
    bytes_received INTEGER NOT NULL,        -- the lower 62 bits, as of all sums
    bytes_received_high INTEGER NOT NULL,   -- what is beyond them
    times BLOB NOT NULL,                    -- those that were measured, packed
    PRIMARY KEY (run, phase, name)
);
CREATE TABLE inner_accounts (
    run TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,                     -- Counts, packed: their sum
    PRIMARY KEY (run, phase, name)
) WITHOUT ROWID;
CREATE TABLE tracebacks (
    run TEXT NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL,                     -- the first for this reason
    PRIMARY KEY (run, reason)
) WITHOUT ROWID;
CREATE TABLE series (
    run TEXT NOT NULL,
    second INTEGER NOT NULL,                -- the first of its seconds
    seconds INTEGER NOT NULL DEFAULT 1,     -- how many they are
    outcomes TEXT NOT NULL,
    published TEXT NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    published_sent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, second)
) WITHOUT ROWID;
CREATE INDEX unpublished_series ON series (run, second)
    WHERE (outcomes != published OR sent != published_sent);
CREATE TABLE failed (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    outcome TEXT NOT NULL,
    start INTEGER NOT NULL,                 -- the first coordinate
    wave BLOB,                              -- of an open run: the wave of these requests, packed
    body BLOB NOT NULL,                     -- ranges of coordinates, packed
    reasons BLOB                            -- why they failed, by runs, packed; NULL if that is not kept
);
CREATE INDEX failed_of_runs ON failed (run, start);
CREATE TABLE failed_sizes (
    run TEXT PRIMARY KEY,
    ranges INTEGER NOT NULL,                -- how many its rows in `failed` have
    reason_runs INTEGER NOT NULL DEFAULT 0  -- and how many runs of reasons
) WITHOUT ROWID;

-- Schedules of runs whose requests have due times, or that end at a time.

CREATE TABLE active_periods (
    run TEXT NOT NULL,
    ordinal INTEGER NOT NULL,               -- from 1: how often the run has begun or gone on
    starts_at REAL NOT NULL,
    offset_s REAL NOT NULL,                 -- the time of the schedule's clock at its start
    stop_s REAL,                            -- and at its end; NULL while it is open
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

-- Thresholds and hooks.

CREATE TABLE thresholds (
    run TEXT NOT NULL,
    ordinal INTEGER NOT NULL,               -- its place among those of the spec, from 0
    lost_at REAL,                           -- when it was certain to fail
    worst REAL,                             -- of one over several seconds in a row: the worst of these
    lost_value REAL,                        -- the first of these in which it did not hold
    lost_phase TEXT,
    lost_clock_s REAL,
    longest_s REAL NOT NULL DEFAULT 0,      -- the longest row so far
    PRIMARY KEY (run, ordinal)
) WITHOUT ROWID;
CREATE TABLE hooks (
    run TEXT NOT NULL,
    hook TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,     -- the number of the newest call
    tries INTEGER NOT NULL DEFAULT 0,       -- calls since the run began, or was resumed after a failure
    worker TEXT NOT NULL DEFAULT '',        -- that got the newest call
    incarnation TEXT NOT NULL DEFAULT '',
    since REAL NOT NULL DEFAULT 0,          -- when that was, or since when a teardown is owed
    ended_at REAL,
    error TEXT NOT NULL DEFAULT '',
    traceback TEXT NOT NULL DEFAULT '',
    end_state TEXT NOT NULL DEFAULT '',     -- of a teardown: the state of the run after it
    end_reason TEXT NOT NULL DEFAULT '',
    value TEXT NOT NULL DEFAULT 'null',     -- returned by the hook; may be large, so it comes last
    PRIMARY KEY (run, hook)
) WITHOUT ROWID;

-- Who took part in a run, and what went on.

CREATE TABLE workers (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    cpu_s REAL NOT NULL DEFAULT 0,
    peak_rss_mb REAL NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, worker)
) WITHOUT ROWID;
CREATE TABLE processes (
    run TEXT NOT NULL,
    process TEXT NOT NULL,
    peak_mb REAL NOT NULL,
    PRIMARY KEY (run, process)
) WITHOUT ROWID;
CREATE TABLE servers (
    run TEXT NOT NULL,
    store TEXT NOT NULL,              -- where a delay server of the run counts
    seen_at REAL NOT NULL,
    PRIMARY KEY (run, store)
) WITHOUT ROWID;
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    samples INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- samples are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0,    -- and those by then will be
    published_to REAL NOT NULL DEFAULT 0,   -- samples that end by then are in lines
    late_lines INTEGER NOT NULL DEFAULT 0   -- how many lines had counts that came after those of their second
) WITHOUT ROWID;
CREATE TABLE samples (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Sample, packed; its outcomes are in the series
    state TEXT NOT NULL DEFAULT '',   -- of the run
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    body BLOB NOT NULL                -- an Event, packed
);
CREATE INDEX events_of_runs ON events (run);

-- Lines that wait for Loki.

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    line TEXT NOT NULL,
    is_late INTEGER,                  -- into which stream it goes; decided when it is first sent
    sent_ns INTEGER                   -- its time by the wall clock, decided then as well
);
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('latency', 'worker', 'coverage');
CREATE INDEX outbox_of_runs ON outbox (run);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO outbox_size VALUES (0, 0);
CREATE TABLE streams (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL,               -- of the newest line
    newest_ns INTEGER NOT NULL DEFAULT 0,   -- of the newest line that was sent, by the wall clock
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
