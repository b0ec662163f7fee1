"""Requests that the coordinator accounts by itself: not sent in time, or lost with a worker.

Only pending requests are accounted so, in the transaction that finds them pending. No worker reports them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.rules.failed_requests import add_unsent
from oku_coordinator.ledger.rules.lifecycle import enter_next_state
from oku_coordinator.ledger.rules.phase_plan import PhasePlan, build_phase_plan
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import outbox_table, schedule_table
from oku_coordinator.ledger.tables.accounts import series_table
from oku_coordinator.ledger.tables.accounts.account_table import open_account
from oku_coordinator.ledger.tables.accounts.failure_table import split_at_waves
from oku_coordinator.ledger.tables.run_table import fetch_spec, fetch_state
from oku_coordinator.ledger.tables.slice_table import account_pending
from oku_core.accounting.index_ranges import Range
from oku_core.accounting.outcome import (
    CAUSE_REASONS,
    LOST,
    NOT_DEALT,
    NOT_SENT,
    OUTCOMES,
    WORKER_LOST,
    ReasonCount,
    build_no_causes,
    build_no_counts,
)
from oku_core.accounting.run_state import FINAL_STATES
from oku_core.messaging.checkpoint import Part
from oku_core.results.lines import LineKind, build_unsent_line
from oku_core.schedule.lane import Lane, clip_ranges
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave
from oku_core.spec.request_template import TurnCounts, find_target_turns

_AT_ONCE = 16_384
"""A larger number of evenly spaced indices is not visited one by one."""


class TargetCount(NamedTuple):
    """The requests of one target.

    Attributes:
        name: the name of the target; empty if the spec names none.
        requests: how many there are.
        first: the lowest of them: an index if targets are distinguished, else a coordinate.
        last: the highest of them, by the same rule.
    """

    name: str
    requests: int
    first: int
    last: int

    def join(self, other: "TargetCount") -> "TargetCount":
        """The requests of both, which have the same target."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return TargetCount(self.name, self.requests + other.requests, first, last)


def account_not_dealt(transaction: Transaction, run: str, ranges: Iterable[Range], now: float) -> int:
    """Account the pending requests of some ranges as not sent, because no worker had them in time.

    Args:
        transaction: to write in.
        run: the id of an open run; nothing changes if it is over.
        ranges: `[start, stop)`; parts that are not pending stay as they are.
        now: Unix time, in whose second they count.

    Returns:
        The number of accounted requests.
    """
    return _account(transaction, run, ranges, NOT_SENT, now)


def account_lost(transaction: Transaction, run: str, ranges: Iterable[Range], now: float) -> int:
    """Account the pending requests of some ranges as lost, because their worker died.

    Same arguments and result as `account_not_dealt`.
    """
    return _account(transaction, run, ranges, LOST, now)


def _account(transaction: Transaction, run: str, ranges: Iterable[Range], outcome: int, now: float) -> int:
    if fetch_state(transaction, run) in FINAL_STATES:
        return 0
    unsent: dict[str, list[Range]] = {}
    for phase, start, stop in _cut_at_phases(build_phase_plan(fetch_spec(transaction, run)), ranges):
        unsent.setdefault(phase, []).extend(account_pending(transaction, run, start, stop))
    for phase, found in unsent.items():
        if found:
            add_unsent(transaction, run, OUTCOMES[outcome], found)
            for target in count_by_target(transaction, run, found):
                _fold(transaction, run, _build_part(phase, outcome, target), now)
    enter_next_state(transaction, run, now)
    return sum(stop - start for found in unsent.values() for start, stop in found)


def _cut_at_phases(plan: PhasePlan, ranges: Iterable[Range]) -> Iterator[tuple[str, int, int]]:
    for start, stop in ranges:
        at = start
        while at < stop:
            phase = plan.find_phase(at)
            end = min(stop, phase.stop)
            yield phase.name, at, end
            at = end


def _build_part(phase: str, outcome: int, target: TargetCount) -> Part:
    """The growth of the account of one target."""
    outcomes, not_sent = build_no_counts(), build_no_causes()
    outcomes[outcome] = target.requests
    if outcome == NOT_SENT:
        not_sent[NOT_DEALT] = target.requests
    reason = WORKER_LOST if outcome == LOST else CAUSE_REASONS[NOT_DEALT]
    reasons = [ReasonCount(outcome, reason, target.requests, target.first, target.last)]
    return Part(phase=phase, name=target.name, outcomes=outcomes, not_sent=not_sent, reasons=reasons)


def _fold(transaction: Transaction, run: str, part: Part, now: float) -> None:
    open_account(transaction, run, (part.phase, part.name)).add(part)
    series_table.add_seconds(transaction, run, {math.floor(now): [*part.outcomes, 0]})
    outbox_table.put(transaction, run, LineKind.RANGE, now, [build_unsent_line(part)])


def count_by_target(transaction: Transaction, run: str, ranges: Sequence[Range]) -> list[TargetCount]:
    """The requests of an open run by target.

    A range with a part of a cell of random arrivals makes it necessary to draw that cell.

    Args:
        transaction: to read in.
        run: the id of the run.
        ranges: coordinates, at least one.
    """
    spec = fetch_spec(transaction, run)
    plan = build_phase_plan(spec)
    if len(plan.targets) == 1 or plan.schedule is None:
        requests = sum(stop - start for start, stop in ranges)
        first, last = min(start for start, _ in ranges), max(stop for _, stop in ranges) - 1
        return [TargetCount(plan.targets[0], requests, first, last)]
    turns = find_target_turns(spec)
    counts: dict[int, TargetCount] = {}
    for wave, pieces in split_at_waves(sorted(ranges), schedule_table.fetch_waves(transaction, run)):
        for indices in _iter_indices(plan.schedule, wave, pieces):
            for place, requests, first, last in _count_turns(turns, indices):
                found = TargetCount(plan.targets[place], requests, first, last)
                counts[place] = found if place not in counts else counts[place].join(found)
    return [counts[place] for place in sorted(counts)]


def _count_turns(turns: Sequence[int], indices: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """For each target: its place, the number of its indices, and the lowest and highest of them."""
    if isinstance(indices, range) and len(indices) > _AT_ONCE:
        for place, requests, first, last in TurnCounts(turns, indices).count(0, len(indices)):
            yield place, requests, indices[first], indices[last]
        return
    by_target: dict[int, list[int]] = {}
    for index in indices:
        by_target.setdefault(turns[index % len(turns)], []).append(index)
    for place, mine in by_target.items():
        yield place, len(mine), min(mine), max(mine)


def _iter_indices(schedule: Schedule, wave: Wave | None, ranges: Sequence[Range]) -> Iterator[Sequence[int]]:
    """The indices of coordinates in one wave; coordinates without a wave are their own indices."""
    if wave is None or ranges == [(wave.begin, wave.stop)]:
        yield from (range(start, stop) for start, stop in ranges)
        return
    for number in range(wave.lanes):
        lane = Lane(schedule, wave, number)
        if wanted := clip_ranges(ranges, lane.start, lane.stop):
            yield from lane.iter_indices(wanted)
