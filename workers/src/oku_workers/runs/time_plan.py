"""What a closed run that is bounded by time asks of a worker at each time: pure rules.

Times are seconds of the run's activity, unless they are called Unix times.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from oku_core.schedule.stage import ConcurrencyPlan, share_of
from oku_core.schedule.wave import ActivePeriod
from oku_core.spec.load import PhaseTime, list_phase_times, list_stages
from oku_core.spec.spec import Spec
from oku_workers.engines.contract.window import choose_window

_MOST_SPECS = 4

Share = tuple[int, int]
"""The place of a worker, from 0, among so many."""


def find_window(spec: Spec, share: Share | None) -> int:
    """How many requests a worker may have in flight by its share of a concurrency that is always the same."""
    if not spec.shares_concurrency:
        return choose_window(spec)
    return 0 if share is None else share_of(spec.concurrency, *share)


@dataclass(frozen=True)
class TimePlan:
    """The plan of one spec.

    Attributes:
        spec: the spec.
        phases: its phases in their order.
        stages: what its stages ask for; None if its concurrency is always the same.
        end_s: when nothing more is taken; infinite if only the number of requests ends it.
    """

    spec: Spec
    phases: tuple[PhaseTime, ...]
    stages: ConcurrencyPlan | None
    end_s: float

    def find_phase(self, time_s: float) -> str:
        """The phase in which a request that is taken now counts."""
        found = [phase.name for phase in self.phases if phase.begin_s <= time_s]
        return found[-1] if found else self.phases[0].name

    def find_concurrency(self, time_s: float, share: Share | None) -> int:
        """How many requests a worker may have in flight; none before the run begins, or without its share."""
        if not 0 <= time_s < self.end_s:
            return 0
        if self.stages is None:
            return find_window(self.spec, share)
        return 0 if share is None else share_of(self.stages.find_limit(time_s), *share)

    def find_next_change(self, time_s: float) -> float:
        """When another phase begins, or the end comes; infinite if nothing more does."""
        changes = (0.0, *(float(phase.begin_s) for phase in self.phases), self.end_s)
        return min((change for change in changes if change > time_s), default=math.inf)


@dataclass(frozen=True)
class RunTime:
    """A plan with the period of activity in which it is carried out."""

    plan: TimePlan
    period: ActivePeriod

    def measure_s(self, unix_time: float) -> float:
        """The time of the run at a Unix time of the coordinator's clock; negative before its period."""
        if unix_time < self.period.starts_at:
            return -math.inf
        return self.period.schedule_s(unix_time)

    def find_next_change(self, unix_time: float) -> float:
        """The Unix time at which something else holds."""
        if unix_time < self.period.starts_at:
            return self.period.starts_at
        return self.period.unix_time(self.plan.find_next_change(self.measure_s(unix_time)))


@lru_cache(maxsize=_MOST_SPECS)
def build_time_plan(spec: Spec) -> TimePlan:
    """Build the plan of a closed run."""
    stages = list_stages(spec)
    length_s = spec.length_s
    return TimePlan(
        spec=spec,
        phases=list_phase_times(spec),
        stages=ConcurrencyPlan(stages) if stages else None,
        end_s=math.inf if length_s is None else float(length_s),
    )
