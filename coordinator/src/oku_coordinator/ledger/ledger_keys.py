"""The keys of a ledger: with which runs were submitted, so that none is submitted twice."""

from oku_coordinator.ledger.storage.records import KeyRecord
from oku_coordinator.ledger.storage.transaction import LedgerFile
from oku_coordinator.ledger.tables import key_table


class LedgerKeys:
    """What can be done with keys; `LedgerRuns.create` enters them, `LedgerDeletions.begin` keeps them."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def fetch(self, key: str) -> KeyRecord | None:
        """What is kept of a key; None if no run was submitted with it."""
        return self._file.read(lambda read: key_table.fetch_key(read, key))

    def fetch_of_run(self, run: str) -> KeyRecord | None:
        """The key that a run was submitted with, if it was."""
        return self._file.read(lambda read: key_table.fetch_key_of_run(read, run))

    def forget(self, deleted_before: float) -> None:
        """Forget the keys of runs that were deleted before a time."""
        self._file.change(lambda change: key_table.delete_keys(change, deleted_before))
