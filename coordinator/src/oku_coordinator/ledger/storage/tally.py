"""What the slices, leases and workers of a run sum to, kept in memory and updated row by row.

Triggers of the database tell of each row that this process inserts, changes or deletes, whichever statement
did it. So a commit is checked by what it changed, and costs the same however many leases are out. When
another process has written, or a transaction was rolled back, the tally is made anew from all rows.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from oku_coordinator.ledger.storage.records import LeaseRecord
from oku_coordinator.ledger.storage.schema import TALLY_TRIGGERS
from oku_core.accounting.interval import ConservationError, Lengths, Slice, SliceState, check_replacement
from oku_core.accounting.lease_state import LeaseState
from oku_core.spec.spec import Spec

_T = TypeVar("_T")


class Tally:
    """The sums of one run, made from all its rows after these have been checked.

    Args:
        lengths: how much of the run is in each state.
        leases: its active leases.
        worker_requests: the sum of its workers' requests.
    """

    def __init__(self, lengths: Lengths, leases: Iterable[LeaseRecord], worker_requests: int) -> None:
        self._requests = sum(lengths)
        self._lengths: Counter[str] = Counter(lengths._asdict())
        self._worker_requests = worker_requests
        self.leases = {lease.id: lease for lease in leases}
        """The active leases, by id."""
        self.held: Counter[str | None] = Counter(lease.worker for lease in self.leases.values())
        """How many of them each worker has; those that nobody has claimed count for None."""
        self._slices: Counter[tuple[int, int, str]] = Counter()
        self._ranges: Counter[tuple[int, int]] = Counter()

    @property
    def lengths(self) -> Lengths:
        """How much of the run is in each state."""
        return Lengths(*(self._lengths[state] for state in Lengths._fields))

    @property
    def has_changed(self) -> bool:
        """Whether rows have changed since the last check."""
        return bool(self._slices or self._ranges)

    def note_slice(self, sign: int, start: int, stop: int, state: str) -> None:
        """Count a slice that was added, or with a `sign` of -1 removed."""
        self._lengths[state] += sign * (stop - start)
        _add(self._slices, (start, stop, state), sign)
        if state == SliceState.LEASED:
            _add(self._ranges, (start, stop), sign)

    def note_lease(self, sign: int, lease: LeaseRecord) -> None:
        """Count an active lease that was added, or with a `sign` of -1 removed."""
        _add(self._ranges, (lease.start, lease.stop), -sign)
        _add(self.held, lease.worker, sign)
        if sign > 0:
            self.leases[lease.id] = lease
        else:
            self.leases.pop(lease.id, None)

    def note_requests(self, added: int) -> None:
        """Count more requests of workers."""
        self._worker_requests += added

    def check(self) -> Lengths:
        """Check the first law over what has changed since the last check.

        Raises:
            ConservationError: the slices do not partition the request space any more, the leased ones do not
                match the active leases, or the workers' requests do not sum to what is accounted.
        """
        lengths = self.lengths
        check_replacement(self._list_slices(-1), self._list_slices(1))
        if sum(lengths) != self._requests:
            raise ConservationError(
                f"the slices sum to {sum(lengths)}, but the request space has {self._requests}"
            )
        for (start, stop), count in self._ranges.items():
            fault = "is leased, but not by an active lease" if count > 0 else "has a lease, but is not leased"
            raise ConservationError(f"the range [{start}, {stop}) {fault}")
        check_worker_requests(self._worker_requests, lengths)
        self._slices.clear()
        return lengths

    def _list_slices(self, sign: int) -> Iterator[Slice]:
        for (start, stop, state), count in self._slices.items():
            if abs(count) > 1:
                raise ConservationError(f"slice [{start}, {stop}) {state} has changed {count} times")
            if state not in Lengths._fields:
                raise ConservationError(f"slice [{start}, {stop}) is {state}, which is not a state")
            if count == sign:
                yield Slice(start, stop, SliceState(state))


def check_worker_requests(requests: int, lengths: Lengths) -> None:
    """Raise a `ConservationError` unless the workers' requests sum to what is accounted."""
    if requests != lengths.accounted:
        raise ConservationError(
            f"the workers' requests sum to {requests}, but {lengths.accounted} are accounted"
        )


def watch(database: sqlite3.Connection, tallies: dict[str, Tally], specs: dict[str, Spec]) -> None:
    """Update `tallies` with whatever this connection does to rows, and drop changed specs from `specs`."""

    def note_slice(sign: int, run: str, start: int, stop: int, state: str) -> None:
        if tally := tallies.get(run):
            tally.note_slice(sign, start, stop, state)

    def note_lease(sign: int, state: str, lease: str, run: str, *columns: Any) -> None:
        if state == LeaseState.ACTIVE and (tally := tallies.get(run)):
            start, stop, reason, cut_at, execution, worker, incarnation = columns
            record = LeaseRecord(
                id=lease, run=run, start=start, stop=stop, state=LeaseState.ACTIVE, reason=reason,
                cut_at=cut_at, execution=execution, worker=worker, incarnation=incarnation,
            )  # fmt: skip
            tally.note_lease(sign, record)

    def note_worker(run: str, added: int) -> None:
        if tally := tallies.get(run):
            tally.note_requests(added)

    def forget_run(run: str) -> None:
        tallies.pop(run, None)
        specs.pop(run, None)

    for function, arguments in ((note_slice, 5), (note_lease, 11), (note_worker, 2), (forget_run, 1)):
        database.create_function(function.__name__, arguments, function)
    database.executescript(TALLY_TRIGGERS)


def _add(counter: Counter[_T], key: _T, count: int) -> None:
    """Add to a counter, which keeps no zeros."""
    if total := counter[key] + count:
        counter[key] = total
    else:
        counter.pop(key, None)
