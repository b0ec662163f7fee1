"""What a case reads from the ledger of a running stack, whichever version wrote it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class OpenLease(NamedTuple):
    """A lease that a worker has.

    Attributes:
        length: how many indices the worker may have of it, those that it has dealt with included.
        left: how many of them the ledger does not know to be taken.
    """

    length: int
    left: int


class LedgerReader:
    """Reads beside the coordinator.

    Args:
        file: the file of the ledger.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def find_run(self) -> str:
        """The id of the newest run; empty if there is none."""
        with self._open() as database:
            row = database.execute(
                "SELECT run FROM runs ORDER BY created_at DESC, rowid DESC LIMIT 1"
            ).fetchone()
            return str(row[0]) if row else ""

    def list_open_leases(self, run: str) -> list[OpenLease]:
        """The leases that are out."""
        with self._open() as database:
            length, left = _find_columns(database)
            sql = f"SELECT {length}, {left} FROM leases WHERE run = ? AND state = 'active'"
            return [OpenLease(*row) for row in database.execute(sql, (run,))]

    def find_longest_lease(self, run: str) -> int:
        """How many indices the longest lease of a run had in the end."""
        with self._open() as database:
            length, _ = _find_columns(database)
            sql = f"SELECT coalesce(max({length}), 0) FROM leases WHERE run = ?"
            return int(database.execute(sql, (run,)).fetchone()[0])

    def count_pending(self, run: str) -> tuple[int, int]:
        """How many pieces of a run are pending, and how many indices they have."""
        sql = (
            "SELECT count(*), coalesce(sum(stop - start), 0) FROM slices WHERE run = ? AND state = 'pending'"
        )
        with self._open() as database:
            pieces, indices = database.execute(sql, (run,)).fetchone()
            return int(pieces), int(indices)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=10)
        try:
            yield database
        finally:
            database.close()


def _find_columns(database: sqlite3.Connection) -> tuple[str, str]:
    """Expressions for the length of a lease and for what is left of it; before schema 10 it had one range."""
    columns = {row[1] for row in database.execute("PRAGMA table_info(leases)")}
    if "done" in columns:
        return '"end"', '"end" - done'
    return "stop - start", "stop - start"
