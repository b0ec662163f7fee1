"""The deletions of a ledger: which runs are due, and how one is removed, some rows at a time."""

from oku_coordinator.ledger.storage.records import RunEnd
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import deletion_table, key_table, outbox_table

DELETED_AT_ONCE = 500
"""Rows; deleting them takes a few milliseconds."""
_PAGES_AT_ONCE = 50
"""Of 4 KiB; giving them back takes up to 50 ms when the write-ahead log is checkpointed meanwhile."""


class LedgerDeletions:
    """What can be done to delete runs."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def begin(self, run: str, end: RunEnd | None = None) -> int:
        """Delete a run: nobody finds it any more, and `delete_some` removes what is kept of it.

        Returns how many of its lines still waited for Loki, which does not get them.

        Args:
            run: its id.
            end: what is kept of it; must be given if it was submitted with a key.

        Raises:
            UnknownRunError: there is none.
            RunInUseError: it is neither over nor paused.
        """

        def begin(transaction: Transaction) -> int:
            deletion_table.begin_deletion(transaction, run)
            key_table.note_deletion(transaction, run, end)
            return outbox_table.count_lines(transaction, run)

        return self._file.change(begin)

    def find(self) -> str | None:
        """A deleted run that still has rows; None when there is none."""
        return self._file.read(deletion_table.find_deletion)

    def delete_some(self, run: str) -> bool:
        """Remove some rows of a deleted run; gives whether there may be more."""
        return self._file.change(lambda change: deletion_table.delete_some(change, run, DELETED_AT_ONCE))

    def find_surplus(self, most: int | None, ended_before: float | None) -> list[str]:
        """Some of the runs that ended before a time, or that are over in excess of `most`."""
        return self._file.read(lambda read: deletion_table.find_surplus(read, most, ended_before))

    def give_back(self) -> bool:
        """Give some free space back to the file system; gives whether there may be more.

        A ledger that was made by a very old Oku must be rebuilt first; until then its free space is reused.
        """
        return self._file.give_back(_PAGES_AT_ONCE)

    def rebuild(self) -> None:
        """Write the file anew if `give_back` needs it; takes time, and as much disk space again."""
        self._file.rebuild()
