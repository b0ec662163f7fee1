"""The failed requests of a run: stored when leases end, and read as ranges of indices.

Leases have coordinates. In a closed run these are the indices; in an open run, the wave of a lease maps them
to indices, so it is stored with them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import lease_table, schedule_table
from oku_coordinator.ledger.tables.accounts.account_table import fetch_account
from oku_coordinator.ledger.tables.accounts.failure_table import (
    MOST_RANGES,
    MOST_REASON_RUNS,
    FailedRanges,
    add_failed,
    fetch_failed,
    split_at_waves,
)
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.index_ranges import Range, iter_ranges
from oku_core.accounting.outcome import CAUSE_REASONS, NOT_DEALT, OTHER, WORKER_LOST, Outcome
from oku_core.schedule.lane import Lane, clip_ranges
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.stage import Arrivals
from oku_core.schedule.wave import Wave

_MOST_STEPS = 5 * MOST_RANGES + 2 * MOST_REASON_RUNS
"""The number of indices searched for spans: a fast run may have billions of unsent ones."""


class FailedSpan(NamedTuple):
    """The indices `start <= i < stop`, which all failed in the same way and for the same reason."""

    start: int
    stop: int
    outcome: Outcome
    name: str
    reason: str


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
    reason = WORKER_LOST if outcome is Outcome.LOST else CAUSE_REASONS[NOT_DEALT]
    for wave, pieces in split_at_waves(sorted(ranges), schedule_table.fetch_waves(transaction, run)):
        add_failed(transaction, run, FailedRanges("", outcome, wave, pieces, {reason: pieces}))


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

    A range of coordinates may have a span per coordinate: at most `MOST_RANGES` ranges are listed, and at
    most `_MOST_STEPS` indices are searched for them. A range whose reasons differ has several spans. Beyond
    `MOST_REASON_RUNS` spans, it has one, whose reason is `OTHER`.
    """
    return _join(_iter_failed(transaction, run))


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
        yield from sorted(_list_spans(failed))
        return
    failed.sort(key=_get_start)
    steps, left = iter(range(_MOST_STEPS)), MOST_REASON_RUNS
    for _, group in groupby(failed, key=_get_wave_start):
        found = list(group)
        for number, each in enumerate(found):
            if each.is_whole_wave and len(each.by_reason) > 1:
                left -= each.ranges[0][1] - each.ranges[0][0]
                if left < 0:  # a reason would take a step for each index, a wave takes one
                    found[number] = each._replace(by_reason={OTHER: each.ranges})
        spans = merge(*(each for failed in found for each in _iter_indices(schedule, failed)))
        yield from (span for _, span in zip(steps, spans, strict=False))


def _list_failed(transaction: Transaction, lease: LeaseRecord) -> Iterator[FailedRanges]:
    wave = None if lease.wave is None else _find_wave(transaction, lease)
    for part in lease_table.fetch_parts(transaction, lease).values():
        for outcome, packed in part.failed.items():
            reasons = part.split_failed(outcome)
            by_reason = {reason: _list_coordinates(lease, spans) for reason, spans in reasons.items()}
            ranges = _list_coordinates(lease, iter_ranges(packed))
            yield FailedRanges(part.name, outcome, wave, ranges, by_reason)


def _list_coordinates(lease: LeaseRecord, positions: Iterable[Range]) -> list[Range]:
    return [piece for span in positions for piece in lease.ranges.cut(*span)]


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
        for reason, ranges in each.by_reason.items():
            for start, stop in ranges:
                yield FailedSpan(start, stop, each.outcome, each.name, reason)


def _iter_indices(schedule: Schedule, failed: FailedRanges) -> Iterator[Iterable[FailedSpan]]:
    """The indices of coordinates in one wave; coordinates without a wave are their own indices."""
    wave = failed.wave
    if wave is None or (failed.is_whole_wave and len(failed.by_reason) == 1):
        yield sorted(_list_spans([failed]))
        return
    for number in range(wave.lanes):
        lane = Lane(schedule, wave, number)
        for reason, ranges in failed.by_reason.items():
            span = FailedSpan(0, 0, failed.outcome, failed.name, reason)
            yield _iter_lane(lane, ranges, span, is_only=wave.lanes == 1)


def _iter_lane(
    lane: Lane, ranges: Sequence[Range], like: FailedSpan, *, is_only: bool
) -> Iterator[FailedSpan]:
    """The indices of the coordinates in one lane, in rising order, which failed like a span."""
    if not (wanted := clip_ranges(ranges, lane.start, lane.stop)):
        return
    for indices in lane.iter_indices(wanted):
        if isinstance(indices, range) and is_only:
            yield like._replace(start=indices.start, stop=indices.stop)
            continue
        for index in indices if isinstance(indices, range) else sorted(indices):
            yield like._replace(start=index, stop=index + 1)


def _join(spans: Iterable[FailedSpan]) -> Iterator[FailedSpan]:
    """Join adjacent spans that failed in the same way, in rising order, up to the bounds of `read_failed`."""
    pending: FailedSpan | None = None
    ranges = runs = 0
    for span in spans:
        follows = pending is not None and (span.start, *span[2:4]) == (pending.stop, *pending[2:4])
        reason = span.reason if runs < MOST_REASON_RUNS else OTHER
        if pending is not None and follows and reason == pending.reason:
            pending = pending._replace(stop=span.stop)
            continue
        if pending is not None:
            yield pending
        pending = span._replace(reason=reason)
        runs += 1
        ranges += not follows
        if ranges > MOST_RANGES:
            return
    if pending is not None:
        yield pending


def _get_start(failed: FailedRanges) -> int:
    return failed.ranges[0][0] if failed.wave is None else failed.wave.begin


def _get_wave_start(failed: FailedRanges) -> tuple[int, bool]:
    return _get_start(failed), failed.wave is None
