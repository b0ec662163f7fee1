"""What holds of a closed run that goes by time: its end, its concurrency, and its highest rate."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.laws import LawBrokenError
from tests.simulation.periods import Moment, Period

from oku_core.schedule.stage import ConcurrencyPlan
from oku_core.spec.load import list_stages
from oku_core.spec.spec import Spec

_LOOK_BACK_S, _LOOK_AHEAD_S = 0.5, 0.1
"""A concurrency that changes is followed within this time."""
_PACE_S, _STALE_S = 8.0, 3.1
"""A highest rate is judged over so long; for so long a worker may go by an old share, which came late."""
_SPARE_EACH = 3
"""A worker may send so many requests more than its share of a highest rate."""


@dataclass
class TimeLimits:
    """The limits of one run.

    Args:
        spec: of the run.
    """

    spec: Spec
    _taken_at: deque[float] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        """Read the plan."""
        stages = list_stages(self.spec) if self.spec.is_timed else ()
        self._plan = ConcurrencyPlan(stages) if stages else None
        self._length_s = float(self.spec.length_s or 0) if self.spec.is_timed else None

    def check_taken(self, moment: Moment, periods: Sequence[Period]) -> None:
        """Check that a request is taken while the clock goes, and before the end of the run."""
        if self._length_s is None:
            return
        if all(moment.now < period.starts_at - moment.slack_s for period in periods):
            raise LawBrokenError("a request is taken before the run begins")
        overs = [period.measure_s(moment.now) - self._length_s for period in periods]
        if all(over_s > moment.slack_s for over_s in overs):
            raise LawBrokenError(f"a request is taken {min(overs):.6f} s after the end of the run")

    def note_taken(self, now: float) -> int:
        """A request of the run is taken at a true time; gives how many were of late."""
        taken_at = self._taken_at
        taken_at.append(now)
        while taken_at[0] < now - _PACE_S:
            taken_at.popleft()
        return len(taken_at)

    def check_pace(self, taken: int, workers: int) -> None:
        """Check how many requests were taken of late by workers that have had their shares for a while."""
        if self.spec.max_rate is None:
            return
        most = float(self.spec.max_rate.per_second) * (_PACE_S + _STALE_S) + _SPARE_EACH * workers
        if taken > most:
            raise LawBrokenError(
                f"{taken} requests are taken in {_PACE_S:.0f} s, but the rate is {self.spec.max_rate}"
            )

    def find_concurrency(self, clock_s: float) -> tuple[int, int] | None:
        """The fewest and the most requests in flight over all workers that the run asks for about now."""
        if self._plan is None:
            most = min(self.spec.concurrency, self.spec.requests)
            return (most, self.spec.concurrency) if self.is_steady(clock_s) else None
        if self._length_s is None:
            return None
        if not _LOOK_BACK_S < clock_s < self._length_s - _LOOK_AHEAD_S:
            return None
        step_s = 0.02
        count = round((_LOOK_BACK_S + _LOOK_AHEAD_S) / step_s)
        levels = [self._plan.find_limit(clock_s - _LOOK_BACK_S + step_s * step) for step in range(count + 1)]
        return min(levels), max(levels)

    def is_steady(self, clock_s: float) -> bool:
        """Whether the time of the run has begun and does not end soon."""
        return self._length_s is None or 1.0 < clock_s < self._length_s - 1.0

    def check_unused(self, clock_s: float) -> None:
        """Check that a run with unused requests is complete only after its time, when its clock says this."""
        if self._length_s is None or clock_s < self._length_s:
            raise LawBrokenError(
                f"requests are left unused although the clock of the run is at {clock_s:.3f} s"
            )
