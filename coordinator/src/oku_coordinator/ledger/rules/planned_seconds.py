"""What the plan of a run says of seconds that are over, by when its clock went on.

Live samples know it of the moments at which they were made. Here it is of whole seconds, as the series is, so
that the seconds of a run sum to all of its requests, and what was sent in one is compared with its own plan.
"""

from collections.abc import Iterable

import msgspec

from oku_coordinator.ledger.storage.transaction import Transaction
from oku_coordinator.ledger.tables import period_table
from oku_coordinator.ledger.tables.run_table import fetch_spec
from oku_core.results.lines import NO_TIME, TimeProgress
from oku_core.results.sample import Sample
from oku_core.spec.load_plan import ClockPeriod, LoadPlan, build_load_plan, read_clock_s

_MOST_LATE_S = 0.25
"""Ticks are due at whole seconds, and usually a few milliseconds late."""


class PlanByTime:
    """The plan of a run by Unix time.

    Args:
        plan: by the run's clock.
        periods: when that went on, the oldest first.
    """

    def __init__(self, plan: LoadPlan, periods: Iterable[ClockPeriod]) -> None:
        self._plan = plan
        self._periods = tuple(periods)

    def count(self, first: float, stop: float) -> int | None:
        """How many requests the rate makes in `[first, stop)`; None without a rate.

        Where the clock was set back, as the run went on, nothing counts for a second time.
        """
        return self._plan.count(self._read_most_s(first), self._read_most_s(stop))

    def find_phase(self, at: float) -> str:
        """The phase at a time; empty if the run has only one, without a name."""
        return self._plan.find_phase(self._read_s(at))

    def add_to(self, sample: Sample) -> Sample:
        """The same sample with the plan of its seconds."""
        first, stop = find_whole(sample.at - sample.seconds), find_whole(sample.at)
        return msgspec.structs.replace(
            sample, requests_planned=self.count(first, stop), phase=self.find_phase(first)
        )

    def measure_progress(self, sample: Sample) -> TimeProgress:
        """How far the run was at the end of a sample, if it has a rate or ends after a time."""
        if (length_s := self._plan.length_s) is None:
            return NO_TIME
        clock_s = min(length_s, self._read_s(sample.at))
        return TimeProgress(clock_s, length_s, self._plan.find_unused(sample.requests_total))

    def _read_s(self, at: float) -> float:
        return read_clock_s(self._periods, at)

    def _read_most_s(self, at: float) -> float:
        """The most that the clock has said until then."""
        return max((period.measure_s(at) for period in self._periods if period.starts_at <= at), default=0.0)


def find_whole(at: float) -> float:
    """The whole second that a tick was due at; the time itself if it was not on time."""
    whole = round(at)
    return whole if abs(at - whole) < _MOST_LATE_S else at


def fetch_planned_seconds(transaction: Transaction, run: str) -> PlanByTime:
    """The plan of a run, which must be there."""
    plan = build_load_plan(fetch_spec(transaction, run))
    return PlanByTime(plan, period_table.fetch_periods(transaction, run))
