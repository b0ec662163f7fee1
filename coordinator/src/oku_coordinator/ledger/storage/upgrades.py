"""What leads the tables of a ledger from each version to the next."""

import contextlib
import sqlite3
from collections.abc import Sequence

import msgspec

from oku_coordinator.ledger.storage.account_schema import ACCOUNT_TABLES
from oku_coordinator.ledger.storage.failure_schema import FAILURE_TABLES
from oku_coordinator.ledger.storage.file_schema import FILE_TABLES
from oku_coordinator.ledger.storage.hook_schema import HOOK_TABLES, LIVE_RUNS
from oku_coordinator.ledger.storage.inner_schema import INNER_TABLES
from oku_coordinator.ledger.storage.key_schema import KEY_TABLES
from oku_coordinator.ledger.storage.lease_rows import decode_counts, encode_counts
from oku_coordinator.ledger.storage.lease_schema import LEASE_TABLES
from oku_coordinator.ledger.storage.records import UNREADABLE
from oku_coordinator.ledger.storage.run_schema import QUEUE_COLUMNS, RESTED_RUNS
from oku_coordinator.ledger.storage.schedule_schema import SCHEDULE_TABLES
from oku_coordinator.ledger.storage.threshold_schema import STRETCH_COLUMNS, THRESHOLD_TABLES
from oku_coordinator.ledger.storage.timing_schema import TIMING_COLUMNS
from oku_core.accounting.failure_reason import build_unknown
from oku_core.accounting.outcome import build_no_counts
from oku_core.messaging.checkpoint import Part
from oku_core.spec.description import describe_load
from oku_core.spec.spec import decode_spec

_FROM_VERSION_8 = """
ALTER TABLE leases RENAME COLUMN boot TO incarnation;
ALTER TABLE moments RENAME TO samples;
ALTER TABLE histories RENAME COLUMN moments TO samples;
ALTER TABLE clocks RENAME TO streams;
ALTER TABLE outbox RENAME COLUMN told_ns TO sent_ns;
"""
_EXPIRE_ALL = """
-- Nobody can still have the leases of an older Oku, whose messages are not understood any more.
UPDATE runs SET resent_at_most = resent_at_most + coalesce(
    (SELECT sum(stop - start) FROM leases WHERE leases.run = runs.run AND leases.state = 'active'), 0);
UPDATE leases SET state = 'expired', reason = 'stack_lost',
    closed_at = max(cut_at, coalesce((SELECT last_report_at FROM runs WHERE runs.run = leases.run), cut_at))
    WHERE state = 'active';
UPDATE slices SET state = 'pending' WHERE state = 'leased';
ALTER TABLE runs RENAME COLUMN last_report_at TO last_checkpoint_at;
ALTER TABLE runs ADD COLUMN watched_s REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN underfilled_s REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN drops_in_flight INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET active_s = active_s
    + max(0, coalesce(last_checkpoint_at, active_since) - active_since), active_since = NULL
    WHERE state IN ('pausing', 'cancelling') AND active_since IS NOT NULL;
UPDATE runs SET owes_summary = is_published WHERE state IN ('pausing', 'cancelling');
UPDATE runs SET state = 'paused' WHERE state = 'pausing';
UPDATE runs SET state = 'cancelled', ended_at = coalesce(last_checkpoint_at, started_at, created_at)
    WHERE state = 'cancelling';
ALTER TABLE leases RENAME TO old_leases;
DROP INDEX active_leases;
DROP INDEX expired_leases;
DROP TABLE strays;
"""
_SERIES_OF_VERSION_10 = """
CREATE TABLE series (
    run TEXT NOT NULL,
    second INTEGER NOT NULL,
    seconds INTEGER NOT NULL DEFAULT 1,
    outcomes TEXT NOT NULL,
    published TEXT NOT NULL,
    PRIMARY KEY (run, second)
) WITHOUT ROWID;
CREATE INDEX unpublished_series ON series (run, second) WHERE outcomes != published;
"""
_MOVE_LEASES = """
INSERT INTO leases (id, run, start, stop, length, worker, incarnation, state, reason, cut_at, closed_at,
    "limit", "end", done, covered, outcomes, resent)
    SELECT id, run, start, stop, stop - start, coalesce(worker, ''), coalesce(incarnation, ''),
        CASE state WHEN 'reported' THEN 'closed' ELSE state END,
        CASE reason WHEN 'not_claimed' THEN 'not_taken' WHEN 'report_lost' THEN 'dropped' ELSE reason END,
        cut_at, closed_at, stop - start, stop - start,
        CASE state WHEN 'reported' THEN stop - start ELSE 0 END, covered, '[0,0,0,0,0,0]',
        CASE WHEN state = 'expired' AND reason != 'not_sent' THEN stop - start ELSE 0 END
    FROM old_leases;
DROP TABLE old_leases;
DROP INDEX losable_lines;
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('latency', 'worker', 'coverage');
ALTER TABLE samples ADD COLUMN state TEXT NOT NULL DEFAULT '';
ALTER TABLE histories ADD COLUMN published_to REAL NOT NULL DEFAULT 0;
ALTER TABLE histories ADD COLUMN late_lines INTEGER NOT NULL DEFAULT 0;
UPDATE histories SET published_to = coalesce((SELECT max(at) FROM samples WHERE run = histories.run), 0);
-- It is not known in which second what was accounted has ended.
INSERT INTO series (run, second, outcomes, published)
    SELECT run, -1, replace(outcomes, ' ', ''), replace(outcomes, ' ', '') FROM runs
    WHERE replace(outcomes, ' ', '') != '[0,0,0,0,0,0]';
"""
_PUT_ASIDE = """
DROP INDEX active_leases;
DROP INDEX resent_leases;
DROP INDEX unpublished_series;
ALTER TABLE leases RENAME TO old_leases;
ALTER TABLE lease_ranges RENAME TO old_lease_ranges;
ALTER TABLE lease_parts RENAME TO old_lease_parts;
ALTER TABLE series RENAME TO old_series;
"""
_ADD_OUTCOMES = """
-- Two outcomes are new, not_sent and lost; nothing has come to them yet.
INSERT INTO leases (id, run, start, stop, length, worker, incarnation, state, reason, cut_at, closed_at,
    "limit", "end", done, in_flight, covered, sequence, outcomes, figures, resent)
    SELECT id, run, start, stop, length, worker, incarnation, state, reason, cut_at, closed_at,
        "limit", "end", done, in_flight, covered, sequence, add_outcomes(outcomes), figures, resent
    FROM old_leases;
INSERT INTO lease_ranges (lease, run, ranges) SELECT lease, run, ranges FROM old_lease_ranges;
INSERT INTO lease_parts (lease, phase, name, run, requests, body)
    SELECT lease, phase, name, run, requests, add_outcomes_to_part(body) FROM old_lease_parts;
INSERT INTO series (run, second, seconds, outcomes, published)
    SELECT run, second, seconds, add_outcomes(outcomes), add_outcomes(published) FROM old_series;
UPDATE runs SET outcomes = add_outcomes(outcomes);
INSERT INTO accounts (run, phase, name, outcomes, not_sent, statuses, bytes_received, bytes_received_high,
    latency, latency_sum_us, latency_sum_us_high, latency_min_us, latency_max_us)
    SELECT run, '', '', outcomes, '[0,0,0]', statuses, bytes_received, bytes_received_high,
        histogram, sum_us, sum_us_high, min_us, max_us
    FROM runs WHERE CASE WHEN json_valid(outcomes)
        THEN (SELECT sum(value) FROM json_each(runs.outcomes)) > 0 ELSE TRUE END;
DROP TABLE old_leases;
DROP TABLE old_lease_ranges;
DROP TABLE old_lease_parts;
DROP TABLE old_series;
ALTER TABLE runs ADD COLUMN load TEXT NOT NULL DEFAULT '';
UPDATE runs SET load = coalesce(tell_load((SELECT spec FROM specs WHERE specs.run = runs.run)), '');
ALTER TABLE runs DROP COLUMN statuses;
ALTER TABLE runs DROP COLUMN bytes_received;
ALTER TABLE runs DROP COLUMN bytes_received_high;
ALTER TABLE runs DROP COLUMN sum_us;
ALTER TABLE runs DROP COLUMN sum_us_high;
ALTER TABLE runs DROP COLUMN min_us;
ALTER TABLE runs DROP COLUMN max_us;
ALTER TABLE runs DROP COLUMN histogram;
ALTER TABLE runs RENAME COLUMN windows TO periods;
"""
_ADD_OUTCOME = """
-- One more outcome is new; nothing has come to it yet.
UPDATE leases SET outcomes = add_outcomes(outcomes);
UPDATE lease_parts SET body = add_outcomes_to_part(body);
UPDATE series SET outcomes = add_outcomes(outcomes), published = add_outcomes(published);
UPDATE runs SET outcomes = add_outcomes(outcomes);
UPDATE accounts SET outcomes = add_outcomes(outcomes);
"""
_ADD_REASONS = """
-- Nobody knows why requests failed before.
UPDATE accounts SET reasons = tell_unknown(outcomes);
"""
_ADD_LAST_END = """
ALTER TABLE runs ADD COLUMN last_ended_at REAL;
"""
_ADD_COUNT_NAME = """
-- Delay servers know older runs by their ids.
ALTER TABLE runs ADD COLUMN count_name TEXT NOT NULL DEFAULT '';
UPDATE runs SET count_name = run;
"""
_FIND_QUEUED_S = """
-- Of older runs only the first wait is known, with what its workers took to begin.
UPDATE runs SET queued_s = max(0, coalesce(started_at, ended_at, queued_at) - created_at);
"""
UPGRADES = {
    8: _FROM_VERSION_8,
    9: f"{_EXPIRE_ALL}{LEASE_TABLES}{_SERIES_OF_VERSION_10}{_MOVE_LEASES}",
    10: f"{_PUT_ASIDE}{LEASE_TABLES}{ACCOUNT_TABLES}{SCHEDULE_TABLES}{_ADD_OUTCOMES}",
    11: (f"{_ADD_OUTCOME}{FAILURE_TABLES}{_ADD_REASONS}{THRESHOLD_TABLES}{FILE_TABLES}{TIMING_COLUMNS}"),
    12: f"{_ADD_OUTCOME}{INNER_TABLES}{HOOK_TABLES}DROP INDEX IF EXISTS live_runs;{LIVE_RUNS}",
    13: f"{STRETCH_COLUMNS}{_ADD_LAST_END}",
    14: _ADD_COUNT_NAME,
    15: KEY_TABLES,
    16: f"{QUEUE_COLUMNS}{_FIND_QUEUED_S}{RESTED_RUNS}",
}
"""What leads from each version to the next; ledgers from before the first of them are not read."""
_OUTCOMES_BEFORE = (6, 8, 9)
"""How many outcomes there were before version 11, in it, and in version 12."""
_decode_part = msgspec.msgpack.Decoder(Part).decode


def teach(database: sqlite3.Connection) -> None:
    """Give a connection the functions that the steps call."""
    for function in (add_outcomes, add_outcomes_to_part, tell_load, tell_unknown):
        database.create_function(function.__name__, 1, function, deterministic=True)


def add_outcomes(counts: str) -> str:
    """Counts of outcomes of an older version, with those that are new since.

    Counts that cannot be read stay as they are, for the breach of their run: the other runs are upgraded.
    """
    with contextlib.suppress(*UNREADABLE):
        return encode_counts(_add_new(decode_counts(counts)))
    return counts


def add_outcomes_to_part(body: bytes) -> bytes:
    """A packed part of an older version, with the outcomes that are new; one that cannot be read as it is."""
    with contextlib.suppress(*UNREADABLE):
        part = _decode_part(body)
        for counts in (part.outcomes, *part.per_second.values()):
            counts[:] = _add_new(counts)
        return msgspec.msgpack.encode(part)
    return body


def _add_new(counts: Sequence[int]) -> list[int]:
    return [*counts, *build_no_counts()[len(counts) :]] if len(counts) in _OUTCOMES_BEFORE else list(counts)


def tell_load(spec: str | None) -> str | None:
    """What a list says of the load of a spec; None if the spec is missing or cannot be read."""
    try:
        return None if spec is None else describe_load(decode_spec(spec))
    except (ValueError, msgspec.MsgspecError):
        return None


def tell_unknown(outcomes: str) -> str:
    """The reasons of an account that has none; counts that cannot be read have none, either."""
    with contextlib.suppress(*UNREADABLE):
        return msgspec.json.encode(build_unknown(decode_counts(outcomes))).decode()
    return "[]"
