"""The file of the ledger and its transactions: one at a time, from any thread.

A change ends with a check; if that or anything else fails, it is rolled back. A change that has returned
survives the process and the machine.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oku_coordinator.ledger.storage.row_tally import RowTally
from oku_coordinator.ledger.storage.row_watch import RowWatch
from oku_coordinator.ledger.storage.run_account import PartName, RunAccount
from oku_coordinator.ledger.storage.schema import BUSY_TIMEOUT_S, VERSION, open_database
from oku_coordinator.ledger.storage.storage_health import StorageHealth, measure_space
from oku_core.accounting.interval import ConservationError
from oku_core.spec.spec import Spec

_PAGES_AT_ONCE = 50
"""Of 4 KiB; freeing them takes up to 50 ms when the write-ahead log is checkpointed meanwhile."""
_LONGEST_CHANGE_S = 1.0
"""The longest time that a computing thread waits for a change."""


@dataclass(frozen=True)
class Memory:
    """Decoded rows by run, valid while no other process writes.

    Attributes:
        accounts: the folded accounts.
        tallies: the sums of their rows.
        specs: the decoded specs.
    """

    accounts: dict[str, RunAccount] = field(default_factory=dict)
    tallies: dict[str, RowTally] = field(default_factory=dict)
    specs: dict[str, Spec] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget everything."""
        self.accounts.clear()
        self.tallies.clear()
        self.specs.clear()


class Transaction:
    """The state of one change, or of several reads of one snapshot.

    Args:
        database: the open file.
        memory: the data kept from one transaction to the next.
        publishes: whether runs created or resumed in it have their lines stored for Loki.
    """

    def __init__(self, database: sqlite3.Connection, memory: Memory, *, publishes: bool) -> None:
        self._database = database
        self._changes_before = database.total_changes
        self.publishes = publishes
        self.accounts = memory.accounts
        self.tallies = memory.tallies
        self.specs = memory.specs
        self.touched: set[str] = set()
        """Runs whose slices, leases or account have changed; they are checked at the end."""
        self.folded: dict[str, dict[PartName, None]] = {}
        """Parts with changed accounts by run, in the order of their rows; written and checked at the end."""
        self.folded_inner: dict[str, dict[PartName, None]] = {}
        """The same of inner requests."""
        self.seconds: dict[str, dict[int, list[int]]] = {}
        """Growth of seconds by run: counts of outcomes, then of sent requests; written at the end."""

    @property
    def has_changed(self) -> bool:
        """Whether rows, or accounts in memory, have changed in it."""
        is_folded = bool(self.folded or self.folded_inner)
        return is_folded or self._database.total_changes != self._changes_before

    def execute(self, sql: str, *values: Any) -> int:
        """Change rows; returns the number of changed ones."""
        return self._database.execute(sql, values).rowcount

    def execute_each(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Execute a statement once for each tuple of values."""
        self._database.executemany(sql, rows)

    def select(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self._database.execute(sql, values).fetchall()

    def select_one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query."""
        row: sqlite3.Row | None = self._database.execute(sql, values).fetchone()
        return row


class LedgerFile:
    """An open ledger file. Safe to use from several threads, one transaction at a time.

    Args:
        path: the file.
        read_only: whether only `read` will be called; another process may write.
        publishes: whether runs created or resumed here have their lines stored for Loki.
        storage: records the health of the file.
        busy_timeout_s: how long to wait for another process that writes.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        publishes: bool = False,
        storage: StorageHealth | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        self.path = path
        self._database = open_database(path, read_only=read_only, busy_timeout_s=busy_timeout_s)
        self.storage = storage or StorageHealth()
        self._publishes = publishes
        self._mutex = threading.RLock()
        self._memory = Memory()
        self._is_busy = False
        """Whether a transaction is open."""
        self._is_unchanged = threading.Event()
        """Set while no change is in progress."""
        self._is_unchanged.set()
        if not read_only:
            RowWatch(self._memory.tallies, self._memory.specs).install(self._database)
        self._version = self._read_version()

    def close(self) -> None:
        """Close the file when it is no longer in use."""
        with self._mutex:
            self._database.close()

    def finish(self, transaction: Transaction) -> None:
        """Finish a change before its commit; an error rolls it back."""

    @contextmanager
    def change(self) -> Iterator[Transaction]:
        """One durable transaction: all changes, or none if the block raises.

        Raises:
            StorageError: the file cannot be written; nothing was changed.
        """
        with self._mutex, self.storage.watching():
            transaction = self._begin("BEGIN IMMEDIATE")
            self._is_unchanged.clear()
            try:
                yield transaction
                self.finish(transaction)
                self._database.execute("COMMIT")
            except BaseException as error:
                # A rejected change has no effect. A failed statement may have changed tallies.
                if transaction.has_changed or isinstance(error, (ConservationError, sqlite3.Error)):
                    self._memory.forget()
                self._roll_back()
                raise
            finally:
                self._is_busy = False
                self._is_unchanged.set()
            if transaction.has_changed:
                self.storage.record_write()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """One read-only snapshot of the file; `StorageError` if it cannot be read."""
        with self._mutex:
            try:
                transaction = self._begin("BEGIN")
                try:
                    yield transaction
                finally:
                    self._is_busy = False
                    self._roll_back()
            except sqlite3.OperationalError as error:
                self.storage.raise_fault(error)
                raise

    def yield_to_change(self) -> None:
        """Wait, in a computing thread, for a change in progress.

        SQLite releases the interpreter at each statement, and a computing thread returns it late: a change of
        a few hundred rows would take several times as long.
        """
        self._is_unchanged.wait(_LONGEST_CHANGE_S)

    def try_writing(self) -> None:
        """Write a page with unchanged content, and measure the free space.

        Raises:
            StorageError: the file cannot be written.
        """
        self.storage.record_space(measure_space(self.path))
        with self._mutex, self.storage.watching():
            try:
                self._begin("BEGIN IMMEDIATE")
                # Unlike an UPDATE to the same value, this writes the page.
                self._database.execute(f"PRAGMA user_version = {VERSION}")
                self._database.execute("COMMIT")
            finally:
                self._is_busy = False
                self._roll_back()
            self.storage.record_write()

    def free_pages(self) -> bool:
        """Return some free space to the file system; returns whether more may be left."""
        with self._mutex, self.storage.watching():
            before = self._count_free()
            if before == 0:
                return False
            # Each step of this statement frees one page, and `execute` takes a single one.
            self._database.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            return 0 < self._count_free() < before

    def _count_free(self) -> int:
        return int(self._database.execute("PRAGMA freelist_count").fetchone()[0])

    def _begin(self, statement: str) -> Transaction:
        if self._is_busy:
            raise RuntimeError("a transaction of this ledger is open already")
        self._roll_back()
        self._database.execute(statement)
        # Data in memory is valid only while no other process has written.
        if (version := self._read_version()) != self._version:
            self._version = version
            self._memory.forget()
        self._is_busy = True
        return Transaction(self._database, self._memory, publishes=self._publishes)

    def _read_version(self) -> int:
        """A number that changes when another connection has written (PRAGMA data_version of SQLite)."""
        return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    def _roll_back(self) -> None:
        # A failed COMMIT may have ended the transaction already; a failed ROLLBACK has not.
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
