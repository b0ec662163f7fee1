"""The leases of a ledger: they are cut from the request space, and reported or taken back."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from oku_coordinator.ledger.rules import conservation, intake, reclaim
from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import LedgerFile
from oku_coordinator.ledger.tables import lease_table, slice_table
from oku_core.accounting.interval import Slice
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.accounting.message_verdict import MessageVerdict
from oku_core.messaging.lease import Message


class LedgerLeases:
    """What can be done with the leases of a ledger, and with the slices that they are cut from."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def cut(self, run: str, choices: Sequence[Callable[[int], int]], now: float) -> list[LeaseRecord]:
        """Lease pending indices of a run, once for each choice, all in one transaction.

        A choice gives the largest size of its lease for what is pending then. There are fewer leases when
        nothing is pending any more, and none when the run is not running.
        """
        return conservation.change(
            self._file, lambda transaction: lease_table.cut_leases(transaction, run, choices, now), now
        )

    def apply(self, messages: Sequence[Message], now: float) -> list[MessageVerdict]:
        """Take in claims and reports, all in one transaction; gives a verdict on each.

        Raises:
            BreachError: the account of a run would not balance. Nothing was taken in and the run has failed;
                the messages of other runs can be applied again without it.
        """
        return conservation.change(
            self._file,
            lambda transaction: [intake.take_in(transaction, message, now) for message in messages],
            now,
        )

    def expire(self, leases: Iterable[str], reason: ExpiryReason, now: float) -> list[str]:
        """Take active leases back, all in one transaction; their ranges are pending again.

        Returns the ids of those that were active.
        """
        return conservation.change(
            self._file,
            lambda transaction: [
                lease for lease in leases if reclaim.expire_lease(transaction, lease, reason, now)
            ],
            now,
        )

    def fetch_active(self, run: str) -> list[LeaseRecord]:
        """The active leases of a run."""
        return self._file.read(lambda transaction: lease_table.fetch_active_leases(transaction, run))

    def find_run(self, lease: str) -> str | None:
        """The run of a lease in whatever state; None when there is no such lease."""
        record = self._file.read(lambda transaction: lease_table.find_lease(transaction, lease))
        return record.run if record else None

    def find_void(self, leases: Iterable[str]) -> list[str]:
        """Which of these leases are void: they were taken back, or their run has failed."""
        return self._file.read(lambda transaction: lease_table.find_void(transaction, leases))

    def count_held(self, run: str) -> Counter[str | None]:
        """How many active leases of a run each worker has; those that nobody has claimed count for None."""
        return self._file.read(lambda transaction: lease_table.count_held(transaction, run))

    def count_pending(self, run: str) -> int:
        """How many requests of a run are pending."""
        return self._file.read(lambda transaction: slice_table.sum_lengths(transaction, run).pending)

    def fetch_slices(self, run: str) -> list[Slice]:
        """The request space of a run as it is cut now."""
        return self._file.read(lambda transaction: slice_table.fetch_slices(transaction, run))

    def fetch_taken_back(self, run: str) -> list[tuple[int, int]]:
        """The ranges of leases that were taken back and may have been sent, `[start, stop)`."""
        return self._file.read(lambda transaction: lease_table.fetch_taken_back(transaction, run))
