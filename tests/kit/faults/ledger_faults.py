"""A ledger whose statements fail once, at fail points that the test chooses."""

import inspect
import sqlite3
import threading
from pathlib import Path
from typing import Any, NamedTuple

import oku_coordinator
from oku_coordinator import ledger

_FOLDER, _LEDGER = (f"{Path(package.__path__[0])}/" for package in (oku_coordinator, ledger))
_RARE = ("Foundation.", "CoverageRecorder.", "FileKeeper.", "MainLoop.record_start", "Retention.")
"""Callers that use the ledger at the start, or less than once in most runs of a test."""
_connect = sqlite3.connect
ERRORS = ("database or disk is full", "database is locked", "disk I/O error")


class FailPoint(NamedTuple):
    """A statement of a call of the ledger: the first of its kind in it.

    Args:
        call: the function of the coordinator that has opened the transaction, as `Runs.submit`.
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
    """The function of the coordinator that uses the ledger now; None if the caller is another one."""
    frame = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_FOLDER) and not file.startswith(_LEDGER):
            call = frame.f_code.co_qualname
            return None if call.startswith(_RARE) else call
        frame = frame.f_back
    return None
