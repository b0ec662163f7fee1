"""The ledger: the durable record of every run, and the only place where a request becomes accounted.

It is read and changed in transactions: `with ledger.read() as t: run_table.fetch_run(t, run)`. A change ends
with a check of conservation for each run that it touched. A breach rolls it back, and the run fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from oku_coordinator.ledger.rules import conservation, lifecycle
from oku_coordinator.ledger.storage.records import BreachError
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction


class Ledger(LedgerFile):
    """A ledger file whose changes conserve every request.

    Functions of `tables` and `rules` take a transaction; every time is Unix time, given by the caller.
    """

    def open_reader(self) -> "Ledger":
        """Open the same ledger for a long read, which does not block other transactions."""
        return Ledger(self.path, read_only=True)

    def finish(self, transaction: Transaction) -> None:
        """Check every touched run; `BreachError` if the account of one would not balance."""
        conservation.finish(transaction)

    @contextmanager
    def change(self, now: float | None = None) -> Iterator[Transaction]:
        """Change the ledger in one durable transaction, or not at all.

        Args:
            now: the time of failure of a run in breach; None if no account is changed.

        Raises:
            BreachError: the account of a run would not balance. The run has failed.
            StorageError: the file cannot be written.
        """
        try:
            with super().change() as transaction:
                yield transaction
        except BreachError as error:
            if now is not None:
                with super().change() as transaction:
                    lifecycle.fail(transaction, error.run, error.detail, now)
            raise
