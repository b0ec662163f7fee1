"""The failed requests of a run: stored when leases end, and read as ranges of indices.

Leases have coordinates. In a closed run these are the indices; in an open run, the wave of a lease maps them
to indices, so it is stored with them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table, schedule_table
from oku_coordinator.ledger.tables.accounts.account_table import fetch_account
from oku_coordinator.ledger.tables.accounts.failure_table import (
    MOST_RANGES,
    FailedRanges,
    add_failed,
    fetch_failed,
    split_at_waves,
)
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.index_ranges import Range, iter_ranges
from oku_core.accounting.outcome import Outcome
from oku_core.messaging.checkpoint import Part
from oku_core.schedule.lane import Lane, clip_ranges
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals
from oku_core.schedule.wave import Wave

_MOST_STEPS = 5 * MOST_RANGES
"""The number of indices searched for spans: a fast run may have billions of unsent ones."""


class FailedSpan(NamedTuple):
    """The indices `start <= i < stop`, which all failed in the same way."""

    start: int
    stop: int
    outcome: Outcome
    name: str


@dataclass(frozen=True)
class FailedRequests:
    """The accounted requests of a run that are not ok, at one instant.

    Attributes:
        spans: their indices, in rising order; each span failed in the same way.
        requests: their number, including those for which there was no room in the spans.
    """

    spans: list[FailedSpan]
    requests: int

    @property
    def unlisted(self) -> int:
        """The number of requests outside all spans."""
        return self.requests - sum(span.stop - span.start for span in self.spans)


def fetch_failed_requests(transaction: Transaction, run: str) -> FailedRequests:
    """The failed requests of a run; `UnknownRunError` if there is no such run."""
    requests = count_failed(transaction, run)
    return FailedRequests(list(read_failed(transaction, run)), requests)


def keep_failed(transaction: Transaction, lease: LeaseRecord) -> None:
    """Store the failed requests of a lease that is about to end; its parts are still there."""
    if sum(lease.outcomes) == lease.outcomes[0]:
        return
    for failed in _list_failed(transaction, lease):
        add_failed(transaction, lease.run, failed)


def add_unsent(transaction: Transaction, run: str, outcome: Outcome, ranges: Sequence[Range]) -> None:
    """Store requests of an open run that the coordinator has accounted by itself."""
    for wave, pieces in split_at_waves(sorted(ranges), schedule_table.fetch_waves(transaction, run)):
        add_failed(transaction, run, FailedRanges("", outcome, wave, pieces))


def build_index_finder(transaction: Transaction, lease: LeaseRecord) -> Callable[[int], int]:
    """Build the function from positions of a lease to indices."""
    if lease.wave is None:
        return lease.ranges.index_at
    wave = _find_wave(transaction, lease)
    schedule = build_phase_plan(fetch_spec(transaction, lease.run)).schedule
    if wave is None or schedule is None:  # only in a ledger that was edited by hand
        return lease.ranges.index_at
    return lambda position: _find_index(schedule, wave, lease.ranges.index_at(position))


def read_failed(transaction: Transaction, run: str) -> Iterator[FailedSpan]:
    """Read the failed requests of a run, by index; open leases are as of their last checkpoints.

    A range of coordinates may have a span per coordinate: at most `MOST_RANGES` are listed, and at most
    `_MOST_STEPS` indices are searched for them.
    """
    return islice(_iter_failed(transaction, run), MOST_RANGES)


def count_failed(transaction: Transaction, run: str) -> int:
    """The number of failed requests of a run, listed or not."""
    outcomes = fetch_account(transaction, run).outcomes
    return sum(outcomes) - outcomes[0]


def _iter_failed(transaction: Transaction, run: str) -> Iterator[FailedSpan]:
    schedule = build_phase_plan(fetch_spec(transaction, run)).schedule
    open_leases = lease_table.fetch_open_leases(transaction, run)
    held = [failed for lease in open_leases for failed in _list_failed(transaction, lease)]
    failed = [*fetch_failed(transaction, run), *held]
    if schedule is None:
        yield from _join(sorted(_list_spans(failed)))
        return
    failed.sort(key=_get_start)
    steps = iter(range(_MOST_STEPS))
    for _, group in groupby(failed, key=_get_wave_start):
        found = list(group)
        spans = merge(*(_iter_indices(schedule, each) for each in found))
        yield from _join(span for _, span in zip(steps, spans, strict=False))


def _list_failed(transaction: Transaction, lease: LeaseRecord) -> Iterator[FailedRanges]:
    wave = None if lease.wave is None else _find_wave(transaction, lease)
    for part in lease_table.fetch_parts(transaction, lease).values():
        for outcome in part.failed:
            yield FailedRanges(part.name, outcome, wave, _list_coordinates(lease, part, outcome))


def _list_coordinates(lease: LeaseRecord, part: Part, outcome: Outcome) -> list[Range]:
    return [piece for span in iter_ranges(part.failed[outcome]) for piece in lease.ranges.cut(*span)]


def _find_wave(transaction: Transaction, lease: LeaseRecord) -> Wave | None:
    waves = schedule_table.fetch_waves(transaction, lease.run)
    return next((wave for wave in waves if wave.begin == lease.wave), None)


def _find_index(schedule: Schedule, wave: Wave, coordinate: int) -> int:
    lane = Lane(schedule, wave, wave.lane_of(coordinate))
    if schedule.arrivals is Arrivals.EVEN:
        return wave.begin + wave.lane_of(coordinate) + (coordinate - lane.start) * wave.lanes
    return next(lane.iter_dues(coordinate, coordinate + 1))[0]


def _list_spans(failed: Iterable[FailedRanges]) -> Iterator[FailedSpan]:
    for each in failed:
        for start, stop in each.ranges:
            yield FailedSpan(start, stop, each.outcome, each.name)


def _iter_indices(schedule: Schedule, failed: FailedRanges) -> Iterable[FailedSpan]:
    """The indices of coordinates in one wave; coordinates without a wave are their own indices."""
    wave = failed.wave
    if wave is None or failed.ranges == [(wave.begin, wave.stop)]:
        return _list_spans([failed])
    return merge(*(_iter_lane(schedule, wave, number, failed) for number in range(wave.lanes)))


def _iter_lane(schedule: Schedule, wave: Wave, number: int, failed: FailedRanges) -> Iterator[FailedSpan]:
    """The indices of the coordinates in one lane, in rising order."""
    lane = Lane(schedule, wave, number)
    if not (wanted := clip_ranges(failed.ranges, lane.start, lane.stop)):
        return
    for indices in lane.iter_indices(wanted):
        if isinstance(indices, range) and wave.lanes == 1:
            yield FailedSpan(indices.start, indices.stop, failed.outcome, failed.name)
            continue
        for index in indices if isinstance(indices, range) else sorted(indices):
            yield FailedSpan(index, index + 1, failed.outcome, failed.name)


def _join(spans: Iterable[FailedSpan]) -> Iterator[FailedSpan]:
    """Join adjacent spans that failed in the same way, in rising order."""
    pending: FailedSpan | None = None
    for span in spans:
        if pending is not None and span.start == pending.stop and span[2:] == pending[2:]:
            pending = pending._replace(stop=span.stop)
            continue
        if pending is not None:
            yield pending
        pending = span
    if pending is not None:
        yield pending


def _get_start(failed: FailedRanges) -> int:
    return failed.ranges[0][0] if failed.wave is None else failed.wave.begin


def _get_wave_start(failed: FailedRanges) -> tuple[int, bool]:
    return _get_start(failed), failed.wave is None
