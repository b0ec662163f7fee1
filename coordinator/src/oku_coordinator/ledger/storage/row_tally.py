"""The sums of a run's slices, leases, workers and seconds, kept in memory and updated row by row.

A `RowWatch` reports each changed row. So a commit is checked by its changes, and costs the same for any
number of leases. After a write by another process, or a rollback, the tally is rebuilt from all rows.
"""

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.interval import ConservationError, Lengths, Slice, SliceState, check_replacement

_T = TypeVar("_T")


class RowTally:
    """The sums of one run, built from all its rows after these have been checked.

    Args:
        lengths: how much of the run is in each state, by its slices.
        leases: its open leases, in the order in which they were dealt.
        parts: how many requests the parts of each open lease cover.
        worker_requests: the sum of its workers' requests.
        series: the sum of its seconds.
    """

    def __init__(
        self,
        lengths: Lengths,
        leases: Iterable[LeaseRecord],
        parts: Mapping[str, int],
        worker_requests: int,
        series: Sequence[int],
    ) -> None:
        self._requests = sum(lengths)
        self._lengths: Counter[str] = Counter(lengths._asdict())
        self._parts: Counter[str] = Counter(parts)
        self.worker_requests = worker_requests
        """The requests of all workers together."""
        self.series = list(series)
        """The outcomes of all seconds together."""
        self.leases: dict[str, LeaseRecord] = {}
        """The open leases, by id."""
        self.fleet: dict[str, dict[str, LeaseRecord]] = {}
        """The open leases of each process of a worker, by id and in the order in which they were dealt."""
        self._covered = 0
        self._slices: Counter[tuple[int, int, str]] = Counter()
        self._ranges: Counter[Range] = Counter()
        self._grown: set[str] = set()
        for lease in leases:
            self._add_lease(lease)

    @property
    def lengths(self) -> Lengths:
        """How much of the run is in each state; what open leases cover is accounted."""
        return move_covered(Lengths(*(self._lengths[state] for state in Lengths._fields)), self._covered)

    @property
    def has_changed(self) -> bool:
        """Whether rows have changed since the last check."""
        return bool(self._slices or self._ranges or self._grown)

    def count_slice(self, sign: int, start: int, stop: int, state: str) -> None:
        """Count a slice that was added, or with a `sign` of -1 removed."""
        self._lengths[state] += sign * (stop - start)
        _add(self._slices, (start, stop, state), sign)
        if state == SliceState.LEASED:
            _add(self._ranges, (start, stop), sign)

    def open_lease(self, lease: LeaseRecord) -> None:
        """Add a lease that was dealt."""
        self._add_lease(lease)
        self._count_ranges(lease.ranges.cut(0, lease.end), -1)
        self._grown.add(lease.id)

    def _add_lease(self, lease: LeaseRecord) -> None:
        self.leases[lease.id] = lease
        self.fleet.setdefault(lease.incarnation, {})[lease.id] = lease
        self._covered += lease.covered

    def update_lease(self, lease: LeaseRecord) -> None:
        """Replace an open lease by its newer state."""
        before = self.leases[lease.id]
        self.leases[lease.id] = self.fleet[lease.incarnation][lease.id] = lease
        self._covered += lease.covered - before.covered
        self._grown.add(lease.id)
        if lease.end != before.end:
            # Only ranges from the lower end on can differ.
            lower = min(lease.end, before.end)
            begin = lease.ranges.offset(lease.ranges.find_range(lower)) if lower < lease.length else lower
            self._count_ranges(before.ranges.cut(begin, before.end), 1)
            self._count_ranges(lease.ranges.cut(begin, lease.end), -1)

    def close_lease(self, name: str) -> None:
        """Remove a lease that is no longer open."""
        lease = self.leases.pop(name, None)
        if lease is None:
            return
        held = self.fleet[lease.incarnation]
        del held[name]
        if not held:
            del self.fleet[lease.incarnation]
        self._covered -= lease.covered
        self._count_ranges(lease.ranges.cut(0, lease.end), 1)
        self._grown.add(name)

    def _count_ranges(self, ranges: Iterable[Range], count: int) -> None:
        for piece in ranges:
            _add(self._ranges, piece, count)

    def count_part(self, lease: str, added: int) -> None:
        """Count more covered requests in the parts of an open lease."""
        _add(self._parts, lease, added)
        self._grown.add(lease)

    def count_requests(self, added: int) -> None:
        """Count more requests of workers."""
        self.worker_requests += added

    def count_second(self, sign: int, outcomes: Sequence[int]) -> None:
        """Count outcomes of a second that were added, or with a `sign` of -1 removed."""
        for place, count in enumerate(outcomes):
            self.series[place] += sign * count

    def check(self) -> Lengths:
        """Check conservation over the changes since the last check.

        Raises:
            ConservationError: the slices no longer partition the request space, the leased ones do not match
                the open leases, or an open lease contradicts itself.
        """
        lengths = self.lengths
        check_replacement(self._list_slices(-1), self._list_slices(1))
        if sum(lengths) != self._requests:
            raise ConservationError(
                f"the slices sum to {sum(lengths)}, but the request space has {self._requests}"
            )
        for (start, stop), count in self._ranges.items():
            fault = "is leased, but not by an open lease" if count > 0 else "has a lease, but is not leased"
            raise ConservationError(f"the range [{start}, {stop}) {fault}")
        for name in self._grown:
            check_lease(name, self.leases.get(name), self._parts[name])
        self._slices.clear()
        self._grown.clear()
        return lengths

    def _list_slices(self, sign: int) -> Iterator[Slice]:
        for (start, stop, state), count in self._slices.items():
            if abs(count) > 1:
                raise ConservationError(f"slice [{start}, {stop}) {state} has changed {count} times")
            if state not in Lengths._fields:
                raise ConservationError(f"slice [{start}, {stop}) is {state}, which is not a state")
            if count == sign:
                yield Slice(start, stop, SliceState(state))


def move_covered(lengths: Lengths, covered: int) -> Lengths:
    """Move the covered requests of open leases from leased to accounted."""
    return lengths._replace(leased=lengths.leased - covered, accounted=lengths.accounted + covered)


def check_lease(name: str, lease: LeaseRecord | None, in_parts: int) -> None:
    """Check a single open lease.

    Args:
        name: its id.
        lease: the lease; None if it is no longer open.
        in_parts: how many requests its parts cover.

    Raises:
        ConservationError: its positions are out of order, or its parts or outcomes do not sum to its covered
            requests.
    """
    covered = 0 if lease is None else lease.covered
    if in_parts != covered:
        raise ConservationError(f"lease {name} covers {covered}, but its parts sum to {in_parts}")
    if lease is None:
        return
    if not 0 <= lease.done <= lease.bound <= lease.end <= lease.length:
        raise ConservationError(
            f"lease {name} is done to {lease.done} of {lease.end}, with a limit of {lease.limit} and"
            f" {lease.length} positions"
        )
    positions = [-1, *lease.in_flight, lease.done]
    if not all(map(operator.lt, positions, positions[1:])):
        raise ConservationError(f"the positions in flight of lease {name} do not rise below {lease.done}")
    if sum(lease.outcomes) != covered:
        raise ConservationError(
            f"lease {name} covers {covered}, but its outcomes sum to {sum(lease.outcomes)}"
        )


def check_worker_requests(requests: int, seen: int) -> None:
    """Raise a `ConservationError` unless the workers' requests sum to the reported ones."""
    if requests != seen:
        raise ConservationError(f"the workers' requests sum to {requests}, but {seen} are accounted")


def _add(counter: Counter[_T], key: _T, count: int) -> None:
    """Add to a counter without zeros."""
    if total := counter[key] + count:
        counter[key] = total
    else:
        counter.pop(key, None)
