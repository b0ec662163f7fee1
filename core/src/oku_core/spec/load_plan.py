"""What a spec plans for each part of a run's time: the phase, and how many requests its rate makes.

Times are seconds of the run's clock, which stands still while the run is paused.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import Protocol

from oku_core.schedule.due_counts import DueCount, DueCounts
from oku_core.schedule.stage import ConcurrencyPlan, Stage
from oku_core.spec.load import PhaseTime, build_schedule, list_phase_times, list_stages
from oku_core.spec.spec import OPEN_END, Spec

MOST_PLANS = 8
"""How many plans are kept; the specs of more runs than these are seldom needed at a time."""
_LEAST_IN_FLIGHT = Fraction(1, 2)
"""A concurrency below this is rounded to none."""


class ClockPeriod(Protocol):
    """A period in which the clock of a run goes on, from a start or a resume to the next pause."""

    @property
    def starts_at(self) -> float:
        """The Unix time at which it begins."""

    def measure_s(self, now: float, /) -> float:
        """The time of the clock at a Unix time; it stands still before this period and after it."""


class LoadPlan:
    """The plan of a run."""

    def __init__(self, spec: Spec) -> None:
        self._phases = list_phase_times(spec)
        self._ends_s = [math.inf if phase.end_s is None else float(phase.end_s) for phase in self._phases]
        self._dues = DueCounts(build_schedule(spec)) if spec.is_open else None
        stages = list_stages(spec)
        is_ramp = spec.stages and not spec.is_open
        self._concurrency = ConcurrencyPlan(stages) if is_ramp else None
        self._idle_s = list(_list_idle_s(stages, _LEAST_IN_FLIGHT if is_ramp else Fraction(0)))
        self.length_s = float(spec.length_s or 0) if spec.is_open or spec.is_timed else None
        """How many seconds the run lasts; None if only its last request ends it."""
        self._most = spec.requests if spec.is_timed and spec.requests < OPEN_END else None

    def find_unused(self, requests: int) -> int | None:
        """How many requests a run of this many leaves unused; None unless both time and number end it."""
        return None if self._most is None else self._most - requests

    def count(self, since_s: float, until_s: float) -> int | None:
        """How many requests are due in `[since_s, until_s)`; None without a rate.

        All parts of the run's time sum to all of its requests.
        """
        if self._dues is None:
            return None
        return math.floor(self.count_due(until_s).number) - math.floor(self.count_due(since_s).number)

    @property
    def has_rate(self) -> bool:
        """Whether requests have due times."""
        return self._dues is not None

    def count_due(self, clock_s: float) -> DueCount:
        """How many requests are due before a time, of a run with a rate."""
        assert self._dues is not None
        return self._dues.count_before(clock_s)

    def wants_load(self, since_s: float, until_s: float) -> bool:
        """Whether anything is to be sent in `[since_s, until_s)`: not if all of it is in stages of 0."""
        return not any(begin_s <= since_s and until_s <= end_s for begin_s, end_s in self._idle_s)

    def list_phases(self, since_s: float, until_s: float) -> list[str]:
        """The phases that `[since_s, until_s)` lies in, in their order."""
        first, last = self._find_place(since_s), self._find_place(math.nextafter(until_s, since_s))
        return [phase.name for phase in self._phases[first : last + 1]]

    def find_phase(self, clock_s: float) -> str:
        """The phase at a time, that behind the end being the last; empty if the only one has no name."""
        return self._find(clock_s).name

    def measure_left_s(self, clock_s: float) -> float | None:
        """How much of the phase is left at a time; None if only the last request ends it."""
        end_s = self._find(clock_s).end_s
        return None if end_s is None else max(0.0, float(end_s) - clock_s)

    def find_in_flight(self, clock_s: float) -> int | None:
        """How many requests are to be in flight at a time, over all workers; None without such stages."""
        return None if self._concurrency is None else self._concurrency.find_limit(clock_s)

    def _find(self, clock_s: float) -> PhaseTime:
        return self._phases[self._find_place(clock_s)]

    def _find_place(self, clock_s: float) -> int:
        return min(bisect_right(self._ends_s, clock_s), len(self._phases) - 1)


def _list_idle_s(stages: Iterable[Stage], least: Fraction) -> Iterator[tuple[float, float]]:
    """From when to when nothing is to be sent: stages whose load is 0, or below the least that counts."""
    begin_s = Fraction(0)
    for is_idle, group in groupby(stages, lambda stage: stage.peak < least or not stage.peak):
        end_s = begin_s + sum(stage.duration for stage in group)
        if is_idle:
            yield float(begin_s), float(end_s)
        begin_s = end_s


@lru_cache(maxsize=MOST_PLANS)
def build_load_plan(spec: Spec) -> LoadPlan:
    """Build the plan of a run from its spec alone."""
    return LoadPlan(spec)


def read_clock_s(periods: Iterable[ClockPeriod], at: float) -> float:
    """The time of a run's clock at a Unix time.

    Args:
        periods: when it goes on, the oldest first.
        at: the Unix time.
    """
    clock_s = 0.0
    for period in periods:
        if period.starts_at > at:
            break
        clock_s = period.measure_s(at)
    return clock_s
