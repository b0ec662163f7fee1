"""Which files the runs of a ledger use; they are entered with their run."""

from oku_coordinator.ledger.storage.transaction import LedgerFile
from oku_coordinator.ledger.tables import file_table


class LedgerFiles:
    """What can be asked about the files of runs."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def fetch(self, run: str) -> list[str]:
        """The digests of the files of a run, also of one that is being deleted."""
        return self._file.read(lambda transaction: file_table.fetch_files(transaction, run))

    def fetch_used(self) -> set[str]:
        """The digests of all files that any run uses."""
        return self._file.read(file_table.fetch_used)

    def is_used(self, digest: str) -> bool:
        """Whether any run uses a file."""
        return self._file.read(lambda transaction: file_table.is_used(transaction, digest))
