"""The phases and targets that the requests of a run may have, and the figures for them."""

from dataclasses import dataclass
from functools import lru_cache

from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.measured_time import DUE_TIMES, find_time_fault
from oku_core.accounting.outcome import NOT_SENT, count_answered
from oku_core.messaging.checkpoint import Part
from oku_core.schedule.schedule import Phase, Schedule
from oku_core.spec.load import build_schedule, list_phase_times
from oku_core.spec.request_template import list_target_names
from oku_core.spec.spec import Spec

MOST_PLANS = 8
"""How many plans are cached; specs of more runs are rarely needed at a time."""


@dataclass(frozen=True)
class PhasePlan:
    """The phases of a run, and its targets.

    Attributes:
        names: the names of the phases, in their order.
        targets: the names of the targets, in their order.
        schedule: when its requests are due; None for a closed run.
        has_inner: whether its requests are iterations of user code, which have no status, but inner requests.
    """

    names: tuple[str, ...]
    targets: tuple[str, ...] = ("",)
    schedule: Schedule | None = None
    has_inner: bool = False

    def find_phase(self, index: int) -> Phase:
        """The phase in which an index of an open run is due."""
        if self.schedule is None:
            raise ValueError("nothing is due in a closed run")
        return self.schedule.find_phase(index)

    def find_fault(self, lease: LeaseRecord, part: Part) -> str | None:
        """Find why a part of a lease of this run cannot be true; None if it can.

        The requests of a lease of an open run are all due in one phase.
        """
        if part.phase not in self.names:
            return f"the run has no phase {part.phase!r}"
        if part.name not in self.targets:
            return f"the run has no target {part.name!r}"
        statuses = 0 if self.has_inner else count_answered(part.outcomes)
        if sum(part.statuses.values()) != statuses:
            return f"the statuses do not sum to the {statuses} that have one"
        return _find_closed_fault(part) if self.schedule is None else self._find_open_fault(lease, part)

    def _find_open_fault(self, lease: LeaseRecord, part: Part) -> str | None:
        phase = self.find_phase(lease.start).name
        if part.phase != phase:
            return f"the requests are due in phase {phase!r}, not in {part.phase!r}"
        return find_time_fault(part.times, part.outcomes, is_open=True)

    def find_inner_fault(self, part: Part) -> str | None:
        """Find why inner requests of a lease of this run cannot be true; None if they can."""
        if not self.has_inner:
            return "the run has no inner requests"
        return None if part.phase in self.names else f"the run has no phase {part.phase!r}"


def _find_closed_fault(part: Part) -> str | None:
    if part.outcomes[NOT_SENT] or any(time in part.times for time in DUE_TIMES):
        return "it has requests with due times, but the run is closed"
    return None


@lru_cache(maxsize=MOST_PLANS)
def build_phase_plan(spec: Spec) -> PhasePlan:
    """Build the plan of a run from its spec alone."""
    targets = list_target_names(spec)
    if spec.is_open:
        schedule = build_schedule(spec)
        names = tuple(phase.name for phase in schedule.phases)
        return PhasePlan(names, targets, schedule, has_inner=spec.runs_user_code)
    names = tuple(phase.name for phase in list_phase_times(spec))
    return PhasePlan(names, targets, has_inner=spec.runs_user_code)
