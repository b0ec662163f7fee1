"""What leads the tables of a ledger from each version to the next."""

from oku_coordinator.ledger.storage.lease_schema import LEASE_TABLES

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
_MOVE_LEASES = """
INSERT INTO leases (id, run, start, stop, length, worker, incarnation, state, reason, cut_at, closed_at,
    "limit", "end", done, covered, resent)
    SELECT id, run, start, stop, stop - start, coalesce(worker, ''), coalesce(incarnation, ''),
        CASE state WHEN 'reported' THEN 'closed' ELSE state END,
        CASE reason WHEN 'not_claimed' THEN 'not_taken' WHEN 'report_lost' THEN 'dropped' ELSE reason END,
        cut_at, closed_at, stop - start, stop - start,
        CASE state WHEN 'reported' THEN stop - start ELSE 0 END, covered,
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
UPGRADES = {8: _FROM_VERSION_8, 9: f"{_EXPIRE_ALL}{LEASE_TABLES}{_MOVE_LEASES}"}
"""What leads from each version to the next; ledgers from before the first of them are not read."""
