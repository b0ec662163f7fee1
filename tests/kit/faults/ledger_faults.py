"""A ledger whose statements fail once, at fail points that the test chooses."""

import inspect
import sqlite3
import threading
from typing import Any, NamedTuple

from oku_coordinator.ledger import (
    ledger_deletions,
    ledger_history,
    ledger_leases,
    ledger_outbox,
    ledger_runs,
)

_ROOMS = {
    room.__file__ for room in (ledger_deletions, ledger_history, ledger_leases, ledger_outbox, ledger_runs)
}
_connect = sqlite3.connect
ERRORS = ("database or disk is full", "database is locked", "disk I/O error")


class FailPoint(NamedTuple):
    """A statement of a call of the ledger: the first of its kind in it.

    Args:
        call: the method of one of the ledger's rooms, as `LedgerRuns.create`.
        statement: its text, BEGIN and COMMIT included.
    """

    call: str
    statement: str


class LedgerFaults:
    """Takes note of every statement, and lets those fail once that it is told.

    `connect` stands in for `sqlite3.connect` in the module that opens the file.
    """

    def __init__(self) -> None:
        self.points: dict[FailPoint, None] = {}
        """Where a statement was executed, in this order."""
        self.armed: dict[FailPoint, str] = {}
        """Where the next statement fails, and with which error."""
        self._lock = threading.Lock()

    def connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
        """Connect as `sqlite3.connect` does."""
        faults = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
                faults.pass_through(sql)
                return super().execute(sql, parameters)

            def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
                faults.pass_through(sql)
                return super().executemany(sql, parameters)

        return _connect(*arguments, **named, factory=Connection)

    def pass_through(self, sql: str) -> None:
        """Take note of a statement that is about to be executed."""
        call = _find_call()
        if call is None or sql.startswith(("PRAGMA", "ROLLBACK")):
            return
        with self._lock:
            point = FailPoint(call, " ".join(sql.split()))
            self.points[point] = None
            error = self.armed.pop(point, None)
        if error is not None:
            raise sqlite3.OperationalError(error)


def _find_call() -> str | None:
    """The method of a room of the ledger that is being called."""
    frame, call = inspect.currentframe(), None
    while frame is not None:
        if frame.f_code.co_filename in _ROOMS and "self" in frame.f_locals:
            call = frame.f_code.co_qualname
        frame = frame.f_back
    return call
