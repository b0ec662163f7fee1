"""When each request of an open run is due, and whether those that are taken are on time.

The times are those of one lane that holds the whole schedule: however many workers there are, they must be
the same.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.simulation.laws import DeadLease, LawBrokenError
from tests.simulation.periods import Moment, Period

from oku_core.schedule.lane import Lane
from oku_core.schedule.wave import Wave
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec

_AHEAD_S = 0.3
"""What a dead worker had is lost so long before it is too late: it would not reach another one in time."""

_Cut = tuple[int, int, int]


@dataclass
class DueTimes:
    """The due times of one run.

    Args:
        spec: of the run.
    """

    spec: Spec
    _dues_s: list[float] = field(init=False)
    _indices: dict[tuple[_Cut, int], int] = field(default_factory=dict, init=False)
    _coordinates: dict[tuple[_Cut, int], int] = field(default_factory=dict, init=False)
    _waves: dict[int, Wave] = field(default_factory=dict, init=False)
    _reached_s: float = field(default=0.0, init=False)
    _lost: dict[tuple[str, float], tuple[int, int]] = field(default_factory=dict, init=False)
    _given_up: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Compute them."""
        schedule = build_schedule(self.spec)
        ends = tuple(schedule.count_before_block(block + 1) for block in range(schedule.blocks))
        lane = Lane(schedule, Wave(0, schedule.requests, 1, 0, ends), 0)
        dues = dict(lane.iter_dues(lane.start, lane.stop))
        self._dues_s = [dues[index] / 1e9 for index in range(schedule.requests)]
        self._schedule = schedule

    def check_place(self, wave: Wave, coordinate: int, index: int) -> None:
        """Check that a coordinate of a wave always has the same index, and no other one has it.

        A wave that nobody has may be cut anew, for other workers; then its coordinates have other indices.
        """
        cut = wave.begin, wave.count, wave.lanes
        if not wave.begin <= index < wave.stop:
            raise LawBrokenError(f"coordinate {coordinate} has index {index}, which is not in its wave")
        if (
            self._indices.setdefault((cut, coordinate), index) != index
            or self._coordinates.setdefault((cut, index), coordinate) != coordinate
        ):
            raise LawBrokenError(f"coordinate {coordinate} has index {index}, which was not so before")

    def check_time(self, index: int, moment: Moment, periods: Sequence[Period]) -> None:
        """Check that a request is not sent before its due time, nor later than the spec allows.

        Args:
            index: the request.
            moment: when it is taken.
            periods: those in which it may have been dealt.
        """
        late_s, slack_s = self.spec.late.duration_s, moment.slack_s
        latenesses = [period.measure_s(moment.now) - self._dues_s[index] for period in periods]
        if all(lateness_s < -slack_s for lateness_s in latenesses):
            raise LawBrokenError(f"index {index} is sent {-max(latenesses, default=0):.6f} s before its time")
        if late_s is not None and all(lateness_s > late_s + slack_s for lateness_s in latenesses):
            raise LawBrokenError(f"index {index} is sent {min(latenesses):.6f} s after its time")

    def note_waves(self, waves: Iterable[Wave]) -> None:
        """Take note of how the ledger has cut the schedule."""
        for wave in waves:
            self._waves[wave.begin] = wave

    def note_clock(self, clock_s: float) -> None:
        """Take note of how far the clock of the run has come for those who have leases.

        They may hear late that it was stopped.
        """
        self._reached_s = max(self._reached_s, clock_s)

    def check_given_up(self, unsent: Iterable[int], moment: Moment) -> None:
        """Check that what is accounted and was never sent could not be sent in time any more.

        Args:
            unsent: the coordinates of such requests.
            moment: now.
        """
        late_s = self.spec.late.duration_s
        for coordinate in unsent:
            if coordinate in self._given_up:
                continue
            self._given_up.add(coordinate)
            due_s = self._dues_s[self.find_index(coordinate)]
            if late_s is None:
                raise LawBrokenError(f"coordinate {coordinate} is not sent, however late it may be")
            if self._reached_s < due_s + late_s - _AHEAD_S - moment.slack_s:
                raise LawBrokenError(
                    f"coordinate {coordinate} is given up {due_s + late_s - self._reached_s:.6f} s too early"
                )

    def check_lost(
        self, lost: int, dead: Iterable[DeadLease], periods: Sequence[Period], moment: Moment
    ) -> None:
        """Check that as much is lost as workers died with whose time was past, or nearly so.

        Args:
            lost: how many requests are.
            dead: the leases that were taken back.
            periods: of the run.
            moment: now.
        """
        fewest = most = 0
        for lease in dead:
            known = self._lost.get((lease.id, lease.closed_at))
            if known is None:
                known = self._lost[lease.id, lease.closed_at] = self._bound_lost(
                    lease, periods, moment.slack_s
                )
            fewest, most = fewest + known[0], most + known[1]
        if not fewest <= lost <= most:
            raise LawBrokenError(f"{lost} requests are lost, but workers died with {fewest} to {most}")

    def _bound_lost(self, lease: DeadLease, periods: Sequence[Period], slack_s: float) -> tuple[int, int]:
        late_s = self.spec.late.duration_s
        if late_s is None or not periods:
            return 0, 0
        reached = [period.find_reached_s(lease.closed_at) for period in periods[-2:]]
        # Its clock stops when the schedule is over, and what is late may be sent after that.
        latest = [*reached, periods[-1].measure_s(lease.closed_at)]

        def count(places: Iterable[int], reached_s: float) -> int:
            dues = (self._dues_s[self.find_index(place)] for place in places)
            return sum(due_s + late_s - _AHEAD_S < reached_s for due_s in dues)

        # More may have become known of the lease since it was taken back: then more was lost than it has now.
        return count(lease.at_risk, min(reached) - slack_s), count(lease.allowed, max(latest) + slack_s)

    def count_in_phases(self, ranges: Iterable[tuple[int, int]]) -> dict[str, int]:
        """How many coordinates of some ranges are in each phase; waves never cross their borders."""
        counts: dict[str, int] = {}
        for phase in self._schedule.phases:
            inside = (max(0, min(stop, phase.stop) - max(start, phase.first)) for start, stop in ranges)
            if count := sum(inside):
                counts[phase.name] = count
        return counts

    def find_index(self, coordinate: int) -> int:
        """The index of a coordinate as its wave was cut last; what nobody saw cut was cut for one worker."""
        begins = sorted(self._waves)
        place = bisect.bisect_right(begins, coordinate) - 1
        wave = self._waves[begins[place]] if place >= 0 else None
        if wave is None or coordinate >= wave.stop:
            return coordinate
        lane = wave.lane_of(coordinate)
        found = Lane(self._schedule, wave, lane).iter_dues(coordinate, coordinate + 1)
        return next(index for index, _ in found)
