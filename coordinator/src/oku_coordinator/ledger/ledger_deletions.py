"""The deletions of a ledger: which runs are due, and how one is removed, some rows at a time."""

from oku_coordinator.ledger import deletion, outbox_table
from oku_coordinator.ledger.transaction import LedgerFile, Transaction

DELETED_AT_ONCE = 500
"""Rows; takes some milliseconds."""
_PAGES_AT_ONCE = 50
"""Of 4 KiB; takes up to 50 ms when the write-ahead log is brought into the file meanwhile."""


class LedgerDeletions:
    """The room of deletions."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def begin(self, run: str) -> int:
        """Delete a run: from now on there is none, what is kept of it goes with `delete_some`.

        Returns how many of its lines wait for Loki, which does not get them any more.

        Raises:
            UnknownRunError: there is none.
            RunInUseError: it is neither over nor paused.
        """

        def begin(transaction: Transaction) -> int:
            deletion.begin_deletion(transaction, run)
            return outbox_table.count_lines(transaction, run)

        return self._file.change(begin)

    def find(self) -> str | None:
        """A deleted run of which something is left."""
        return self._file.read(deletion.find_deletion)

    def delete_some(self, run: str) -> bool:
        """Remove some of what is left of a deleted run; whether there may be more."""
        return self._file.change(lambda transaction: deletion.delete_some(transaction, run, DELETED_AT_ONCE))

    def find_surplus(self, most: int | None, ended_before: float | None) -> list[str]:
        """Some of the runs that are over and more than so many, or over since before a time."""
        return self._file.read(lambda transaction: deletion.find_surplus(transaction, most, ended_before))

    def give_back(self) -> bool:
        """Give some of the space that nothing needs back to the file system; whether there may be more.

        A ledger that an older Oku made does that with `rebuild` alone; until then the space is used again.
        """
        return self._file.give_back(_PAGES_AT_ONCE)

    def rebuild(self) -> None:
        """Write the file anew if that is needed for `give_back`; takes its time, and as much room again."""
        self._file.rebuild()
