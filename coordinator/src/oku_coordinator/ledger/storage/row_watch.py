"""Reports each row that this process inserts, changes or deletes to the tallies, for any statement.

Triggers call these methods inside the database. An unreadable row makes it forget the tally of its run, so
that all rows are checked at the end of the change.
"""

import sqlite3
from typing import Any

from oku_coordinator.ledger.storage.lease_records import build_lease_record, decode_counts, decode_growth
from oku_coordinator.ledger.storage.records import UNREADABLE, BreachError
from oku_coordinator.ledger.storage.row_tally import RowTally
from oku_core.accounting.lease_state import LeaseState
from oku_core.spec.spec import Spec

_LEASE_COLUMNS = (
    "id", "run", "start", "stop", "ranges", "worker", "incarnation", "reason", "cut_at", "limit", "end",
    "done", "in_flight", "untouched", "reported_end", "sequence", "outcomes", "figures", "wave", "lane",
)  # fmt: skip
_TRIGGERS = """
CREATE TEMP TRIGGER slice_added AFTER INSERT ON slices BEGIN
    SELECT count_slice(1, new.run, new.start, new.stop, new.state); END;
CREATE TEMP TRIGGER slice_removed AFTER DELETE ON slices BEGIN
    SELECT count_slice(-1, old.run, old.start, old.stop, old.state); END;
CREATE TEMP TRIGGER slice_changed AFTER UPDATE ON slices BEGIN
    SELECT count_slice(-1, old.run, old.start, old.stop, old.state);
    SELECT count_slice(1, new.run, new.start, new.stop, new.state); END;
CREATE TEMP TRIGGER lease_opened AFTER INSERT ON leases WHEN new.state = 'active' BEGIN
    SELECT open_lease(new.id, new.run, new.start, new.stop,
        (SELECT ranges FROM lease_ranges WHERE lease = new.id), new.worker, new.incarnation, new.reason,
        new.cut_at, new."limit", new."end", new.done, new.in_flight, new.untouched,
        new.reported_end, new.sequence, new.outcomes, new.figures, new.wave, new.lane); END;
CREATE TEMP TRIGGER lease_grown AFTER UPDATE OF
    "limit", "end", done, in_flight, untouched, reported_end, sequence, outcomes, figures
    ON leases WHEN old.state = 'active' AND new.state = 'active' BEGIN
    SELECT update_lease(new.id, new.run, new."limit", new."end", new.done, new.in_flight, new.untouched,
        new.reported_end, new.sequence, new.outcomes, new.figures); END;
CREATE TEMP TRIGGER lease_closed AFTER UPDATE OF state ON leases
    WHEN old.state = 'active' AND new.state != 'active' BEGIN
    SELECT close_lease(old.id, old.run); END;
CREATE TEMP TRIGGER lease_removed AFTER DELETE ON leases WHEN old.state = 'active' BEGIN
    SELECT close_lease(old.id, old.run); END;
CREATE TEMP TRIGGER lease_changed AFTER UPDATE OF id, run, start, stop, length, worker, incarnation, cut_at
    ON leases BEGIN SELECT forget_run(old.run); SELECT forget_run(new.run); END;
CREATE TEMP TRIGGER lease_reopened AFTER UPDATE OF state ON leases
    WHEN old.state != 'active' AND new.state = 'active' BEGIN SELECT forget_run(new.run); END;
CREATE TEMP TRIGGER ranges_changed AFTER UPDATE ON lease_ranges BEGIN
    SELECT forget_run(old.run); END;
CREATE TEMP TRIGGER part_added AFTER INSERT ON lease_parts BEGIN
    SELECT count_part(new.run, new.lease, new.requests); END;
CREATE TEMP TRIGGER part_removed AFTER DELETE ON lease_parts BEGIN
    SELECT count_part(old.run, old.lease, -old.requests); END;
CREATE TEMP TRIGGER part_changed AFTER UPDATE ON lease_parts BEGIN
    SELECT count_part(old.run, old.lease, -old.requests);
    SELECT count_part(new.run, new.lease, new.requests); END;
CREATE TEMP TRIGGER second_added AFTER INSERT ON series BEGIN
    SELECT count_second(1, new.run, new.outcomes); END;
CREATE TEMP TRIGGER second_removed AFTER DELETE ON series BEGIN
    SELECT count_second(-1, old.run, old.outcomes); END;
CREATE TEMP TRIGGER second_changed AFTER UPDATE OF run, outcomes ON series BEGIN
    SELECT count_second(-1, old.run, old.outcomes);
    SELECT count_second(1, new.run, new.outcomes); END;
CREATE TEMP TRIGGER worker_added AFTER INSERT ON workers BEGIN
    SELECT count_worker(new.run, new.requests); END;
CREATE TEMP TRIGGER worker_removed AFTER DELETE ON workers BEGIN
    SELECT count_worker(old.run, -old.requests); END;
CREATE TEMP TRIGGER worker_changed AFTER UPDATE ON workers BEGIN
    SELECT count_worker(old.run, -old.requests);
    SELECT count_worker(new.run, new.requests); END;
CREATE TEMP TRIGGER spec_changed AFTER UPDATE ON specs BEGIN
    SELECT forget_run(old.run); END;
"""
"""Each row that this connection inserts, changes or deletes calls a method of `RowWatch`."""


class RowWatch:
    """Keeps `tallies` up to date, and drops changed specs from `specs`.

    Args:
        tallies: the tallies of runs.
        specs: the decoded specs of runs.
    """

    def __init__(self, tallies: dict[str, RowTally], specs: dict[str, Spec]) -> None:
        self._tallies = tallies
        self._specs = specs

    def install(self, database: sqlite3.Connection) -> None:
        """Install the triggers in this connection."""
        for function, arguments in (
            (self.count_slice, 5), (self.open_lease, len(_LEASE_COLUMNS)), (self.update_lease, 11),
            (self.close_lease, 2), (self.count_part, 3), (self.count_worker, 2), (self.count_second, 3),
            (self.forget_run, 1),
        ):  # fmt: skip
            database.create_function(function.__name__, arguments, function)
        database.executescript(_TRIGGERS)

    def count_slice(self, sign: int, run: str, start: int, stop: int, state: str) -> None:
        """Count a slice that was added, or with a `sign` of -1 removed."""
        if tally := self._tallies.get(run):
            tally.count_slice(sign, start, stop, state)

    def open_lease(self, *columns: Any) -> None:
        """Add a lease that was dealt."""
        row = dict(zip(_LEASE_COLUMNS, columns, strict=True))
        if tally := self._tallies.get(row["run"]):
            try:
                tally.open_lease(build_lease_record(row | {"state": LeaseState.ACTIVE}))
            except BreachError:
                self.forget_run(row["run"])

    def update_lease(self, name: str, run: str, *columns: Any) -> None:
        """Update an open lease that has changed."""
        if tally := self._tallies.get(run):
            try:
                tally.update_lease(decode_growth(tally.leases[name], columns))
            except (*UNREADABLE, KeyError):
                self.forget_run(run)

    def close_lease(self, name: str, run: str) -> None:
        """Remove a lease that is no longer open."""
        if tally := self._tallies.get(run):
            tally.close_lease(name)

    def count_part(self, run: str, lease: str, added: int) -> None:
        """Count more covered requests in the parts of a lease."""
        if tally := self._tallies.get(run):
            tally.count_part(lease, added)

    def count_worker(self, run: str, added: int) -> None:
        """Count more requests of a worker."""
        if tally := self._tallies.get(run):
            tally.count_requests(added)

    def count_second(self, sign: int, run: str, outcomes: str) -> None:
        """Count outcomes of a second that were added, or with a `sign` of -1 removed."""
        if tally := self._tallies.get(run):
            try:
                tally.count_second(sign, decode_counts(outcomes))
            except (*UNREADABLE, IndexError):
                self.forget_run(run)

    def forget_run(self, run: str) -> None:
        """Forget a run whose data in memory may be outdated."""
        self._tallies.pop(run, None)
        self._specs.pop(run, None)
