"""How many requests of some ranges each target has, for what the coordinator accounts for by itself."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import schedule_table
from oku_coordinator.ledger.tables.accounts.failure_table import split_at_waves
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.index_ranges import Range
from oku_core.schedule.lane import Lane, clip_ranges
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave
from oku_core.spec.request_template import TurnCounts, find_target_turns

_AT_ONCE = 16_384
"""More indices are not visited one by one if they are evenly spaced."""


class TargetCount(NamedTuple):
    """The requests of one target.

    Attributes:
        name: of the target; empty if the spec names none.
        requests: how many there are.
        first: the lowest of them, an index where targets are told apart, else a coordinate.
        last: the highest of them, by the same rule.
    """

    name: str
    requests: int
    first: int
    last: int

    def join(self, other: "TargetCount") -> "TargetCount":
        """The requests of both, which are of one target."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return TargetCount(self.name, self.requests + other.requests, first, last)


def count_by_target(transaction: Transaction, run: str, ranges: Sequence[Range]) -> list[TargetCount]:
    """The requests of an open run by target.

    If the ranges hold a part of a cell of random arrivals, that cell has to be drawn.

    Args:
        transaction: to read in.
        run: the id of the run.
        ranges: coordinates, of which there is at least one.
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
    """For each target, its place, how many of the indices ask it, and the lowest and the highest of these."""
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
    """The indices of coordinates in one wave; those that no wave was made of are their own."""
    if wave is None or ranges == [(wave.begin, wave.stop)]:
        yield from (range(start, stop) for start, stop in ranges)
        return
    for number in range(wave.lanes):
        lane = Lane(schedule, wave, number)
        if wanted := clip_ranges(ranges, lane.start, lane.stop):
            yield from lane.iter_indices(wanted)
