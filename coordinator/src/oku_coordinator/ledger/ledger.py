"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

It is read and changed in transactions: `with ledger.read() as t: run_table.fetch_run(t, run)`. A change ends
with a check of the first law for each run that it touched. A breach rolls it back, and the run fails.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from oku_coordinator.ledger.rules import conservation, lifecycle
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.schema import BUSY_TIMEOUT_S
from oku_coordinator.ledger.storage.storage_health import StorageHealth
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction

_PAGES_AT_ONCE = 50
"""Of 4 KiB; giving them back takes up to 50 ms when the write-ahead log is checkpointed meanwhile."""


class Ledger:
    """An open ledger. Safe to use from several threads, one transaction at a time.

    Functions of `tables` and `rules` take a transaction; every time is Unix time, given by the caller.

    Args:
        path: where its file is.
        read_only: whether another process may write it.
        publishes: whether lines of the runs that are created or resumed here are kept for Loki.
        storage: records whether the file can be used.
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
        self._path = path
        self.storage = storage or StorageHealth()
        self._file = LedgerFile(
            path, conservation.finish, self.storage, publishes=publishes, read_only=read_only,
            busy_timeout_s=busy_timeout_s,
        )  # fmt: skip

    def close(self) -> None:
        """Close the file as soon as nobody uses it."""
        self._file.close()

    def open_reader(self) -> "Ledger":
        """Open the same ledger to read much of it: the reader waits for nobody, and nobody for the reader."""
        return Ledger(self._path, read_only=True)

    def read(self) -> AbstractContextManager[Transaction]:
        """Read one state of the ledger; keep it short, as nothing else is read or changed meanwhile.

        Raises:
            StorageError: the file cannot be read.
        """
        return self._file.read()

    @contextmanager
    def change(self, now: float | None = None) -> Iterator[Transaction]:
        """Change the ledger in one durable transaction, or not at all.

        Args:
            now: when the run of a breach has failed; None if no account is changed.

        Raises:
            BreachError: the account of a run would not balance. The run has failed.
            StorageError: the file cannot be written.
        """
        try:
            with self._file.change() as transaction:
                yield transaction
        except BreachError as error:
            if now is not None:
                with self._file.change() as transaction:
                    lifecycle.fail(transaction, error.run, error.detail, now)
            raise

    def try_writing(self) -> None:
        """Write without changing anything; `StorageError` if that fails."""
        self._file.try_writing()

    def give_back(self) -> bool:
        """Give some free space back to the file system; gives whether there may be more."""
        return self._file.give_back(_PAGES_AT_ONCE)
