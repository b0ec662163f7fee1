"""The leases of a ledger: they are dealt from the request space, report as they go, and may be taken back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from oku_coordinator.ledger.rules import conservation, intake, reclaim, unsent
from oku_coordinator.ledger.rules.closing import list_covered
from oku_coordinator.ledger.rules.intake import Allow
from oku_coordinator.ledger.rules.reclaim import FindLost, FindReached
from oku_coordinator.ledger.storage.records import LeaseOrder, LeaseRecord, Receipt
from oku_coordinator.ledger.storage.transaction import LedgerFile, Transaction
from oku_coordinator.ledger.tables import lease_table, run_table, slice_table
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import Slice, SliceState
from oku_core.accounting.lease_state import ExpiryReason
from oku_core.messaging.checkpoint import CheckpointBatch

_AT_ONCE = 50
"""Leases; to take them back or to cut them takes less than 20 ms."""


class LedgerLeases:
    """What can be done with the leases of a ledger, and with the slices that they are of."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def deal(self, run: str, orders: Sequence[LeaseOrder], now: float) -> list[LeaseRecord]:
        """Lease pending indices of a run, once for each order, all in one transaction.

        There are fewer leases when nothing is pending any more or an order wants none, and none when the run
        is not running.
        """
        return conservation.change(
            self._file, lambda transaction: lease_table.deal_leases(transaction, run, orders, now), now
        )

    def apply(self, batches: Sequence[CheckpointBatch], allow: Allow, now: float) -> list[Receipt]:
        """Take in checkpoints, all in one transaction; gives a receipt for each batch.

        Args:
            batches: of whatever workers, in the order in which they came.
            allow: says how many positions the worker of a batch may take beyond what it has taken.
            now: Unix time.

        Raises:
            BreachError: the account of a run would not balance. Nothing was taken in and the run has failed;
                the batches of other runs can be applied again without it.
        """
        return conservation.change(
            self._file, lambda transaction: intake.take_in(transaction, batches, allow, now), now
        )

    def take_back(
        self,
        leases: Sequence[str],
        reason: ExpiryReason,
        now: float,
        find_lost: FindLost = reclaim.find_nothing,
        find_reached: FindReached = reclaim.find_no_record,
    ) -> list[str]:
        """Take open leases back, some in each transaction; what they do not cover is pending again.

        Args:
            leases: their ids.
            reason: why.
            now: Unix time.
            find_lost: says what of the ranges of a lease that may have been sent is lost: it is accounted
                for at once.
            find_reached: says how far a dead process may have gone in a lease, if that is known.

        Returns:
            The ids of those that were open.
        """
        taken: list[str] = []
        for some in _batch(leases):
            work = partial(
                reclaim.take_back, names=some, reason=reason, now=now, find_lost=find_lost,
                find_reached=find_reached,
            )  # fmt: skip
            taken += conservation.change(self._file, work, now)
        return taken

    def lower_resent(
        self, run: str, incarnations: Sequence[str], find_reached: FindReached, now: float
    ) -> int:
        """Count again what dead processes may have sent of leases that were taken back from them.

        Returns by how much `resent_at_most` of the run falls.
        """
        work = partial(reclaim.lower_resent, run=run, incarnations=incarnations, find_reached=find_reached)
        return conservation.change(self._file, work, now)

    def account_not_dealt(self, run: str, ranges: Sequence[Range], now: float) -> int:
        """Account for what is pending of some ranges of an open run as not sent, because no worker had it.

        Returns how many requests that are.
        """
        work = partial(unsent.account_not_dealt, run=run, ranges=ranges, now=now)
        return conservation.change(self._file, work, now)

    def cut_at_limits(self, leases: Sequence[str], now: float) -> list[LeaseRecord]:
        """End open leases at their limits, some in each transaction; what lies beyond is pending again.

        Returns those that have become shorter.
        """
        shorter: list[LeaseRecord] = []
        for some in _batch(leases):
            shorter += conservation.change(self._file, partial(reclaim.cut_at_limits, names=some), now)
        return shorter

    def fetch_open(self, run: str) -> list[LeaseRecord]:
        """The open leases of a run, in the order in which they were dealt."""
        return self._file.read(lambda transaction: lease_table.fetch_open_leases(transaction, run))

    def fetch_open_by_incarnation(self, run: str) -> dict[str, list[LeaseRecord]]:
        """The open leases of a run by the process that has them, in the order in which it begins them."""
        return self._file.read(lambda transaction: lease_table.fetch_fleet(transaction, run))

    def fetch_held(self, run: str, incarnations: Sequence[str]) -> dict[str, list[LeaseRecord]]:
        """The open leases of a run that each of these processes has, in the order in which it begins them."""
        return self._file.read(lambda transaction: lease_table.fetch_held(transaction, run, incarnations))

    def find_void(self, leases: Iterable[str]) -> list[str]:
        """Which of these leases are void: they were taken back, or their run has failed."""
        return self._file.read(lambda transaction: lease_table.find_void(transaction, leases))

    def find_unclosed(self, leases: Iterable[str]) -> set[str]:
        """Which of these leases have not been closed by their workers: they are open, or were taken back."""
        return self._file.read(lambda transaction: lease_table.find_unclosed(transaction, leases))

    def count_held(self, run: str) -> Counter[str]:
        """How many open leases of a run each worker has."""
        return self._file.read(lambda transaction: lease_table.count_held(transaction, run))

    def count_pending(self, run: str) -> int:
        """How many requests of a run are pending."""
        return self._file.read(lambda transaction: slice_table.sum_lengths(transaction, run).pending)

    def fetch_slices(self, run: str) -> list[Slice]:
        """The request space of a run as it is cut now."""
        return self._file.read(lambda transaction: slice_table.fetch_slices(transaction, run))

    def measure_extent(self, run: str) -> int:
        """How much of the request space of a run is worth showing.

        It is all of it, but for runs that end after a time: they have far more than they ever use.
        """

        def measure(transaction: Transaction) -> int:
            requests = run_table.fetch_run(transaction, run).requests
            return slice_table.measure_extent(transaction, run, requests)

        return self._file.read(measure)

    def fetch_coverage(self, run: str) -> list[Slice]:
        """The request space of a run as far as it is accounted, also within open leases; in no order."""

        def fetch(transaction: Transaction) -> list[Slice]:
            slices = slice_table.fetch_slices(transaction, run)
            held = lease_table.fetch_open_leases(transaction, run)
            return [
                *(piece for piece in slices if piece.state != SliceState.LEASED),
                *(piece for lease in held for piece in list_covered(lease)),
            ]

        return self._file.read(fetch)

    def fetch_taken_back(self, run: str) -> list[Range]:
        """The ranges that may have been sent in vain, `[start, stop)`."""
        return self._file.read(lambda transaction: lease_table.fetch_taken_back(transaction, run))


def _batch(leases: Sequence[str]) -> Iterator[Sequence[str]]:
    return (leases[place : place + _AT_ONCE] for place in range(0, len(leases), _AT_ONCE))
