"""How many requests of some ranges each target has, for what the coordinator accounts for by itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import wave_table
from oku_coordinator.ledger.tables.failure_table import split_at_waves
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.accounting.index_ranges import Range
from oku_core.schedule.lane import Lane
from oku_core.schedule.schedule import Schedule
from oku_core.schedule.wave import Wave
from oku_core.spec.request_template import find_target_turns

_AT_ONCE = 16_384
"""So many indices are held in memory."""


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
    """The requests of an open run by target; a microsecond for each if it has several.

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
    period = len(turns)
    counts: dict[int, TargetCount] = {}
    for wave, pieces in split_at_waves(sorted(ranges), wave_table.fetch_waves(transaction, run)):
        indices = iter(_iter_indices(plan.schedule, wave, pieces))
        while some := list(islice(indices, _AT_ONCE)):  # all of them may be hours of a fast run
            by_target: list[list[int]] = [[] for _ in plan.targets]
            for index in some:
                by_target[turns[index % period]].append(index)
            for place, mine in enumerate(by_target):
                if mine:
                    found = TargetCount(plan.targets[place], len(mine), min(mine), max(mine))
                    counts[place] = found if place not in counts else counts[place].join(found)
    return [counts[place] for place in sorted(counts)]


def _iter_indices(schedule: Schedule, wave: Wave | None, ranges: Sequence[Range]) -> Iterable[int]:
    """The indices of coordinates in one wave; those that no wave was made of are their own."""
    if wave is None or ranges == [(wave.begin, wave.stop)]:
        return chain.from_iterable(range(start, stop) for start, stop in ranges)
    return chain.from_iterable(_iter_lanes(schedule, wave, ranges))


def _iter_lanes(schedule: Schedule, wave: Wave, ranges: Sequence[Range]) -> Iterator[Sequence[int]]:
    for number in range(wave.lanes):
        lane = Lane(schedule, wave, number)
        inside = [(max(start, lane.start), min(stop, lane.stop)) for start, stop in ranges]
        wanted = [span for span in inside if span[0] < span[1]]
        for chunk in lane.iter_chunks(wanted) if wanted else ():
            yield chunk.indices
