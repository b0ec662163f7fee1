"""Makes the summaries of the phases of a run from its accounts."""

from collections.abc import Iterator, Sequence

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.run_account import RunAccount
from oku_coordinator.runs.account_figures import build_figures
from oku_coordinator.runs.target_summaries import build_targets_of_phase
from oku_core.results.summary import PhaseSummary
from oku_core.spec.load import PhaseTime, list_phase_times
from oku_core.spec.spec import Spec


def build_phases(spec: Spec, accounts: RunAccount, clock_s: float) -> list[PhaseSummary]:
    """The summaries of all phases, in their order; none if the run has only one, without a name.

    Args:
        spec: of the run.
        accounts: what its requests sum to.
        clock_s: what its clock says: for how many seconds it has been active.
    """
    times = list_phase_times(spec)
    if [time.name for time in times] == [""]:
        return []
    return list(_iter_phases(spec, times, accounts, clock_s))


def _iter_phases(
    spec: Spec, times: Sequence[PhaseTime], accounts: RunAccount, clock_s: float
) -> Iterator[PhaseSummary]:
    schedule = build_phase_plan(spec).schedule
    planned = {phase.name: phase.stop - phase.first for phase in schedule.phases} if schedule else {}
    for time in times:
        yield _build_phase(spec, time, accounts, planned.get(time.name), clock_s)


def _build_phase(
    spec: Spec, time: PhaseTime, accounts: RunAccount, planned: int | None, clock_s: float
) -> PhaseSummary:
    account = accounts.build_total(lambda name: name[0] == time.name)
    begin_s, end_s = float(time.begin_s), None if time.end_s is None else float(time.end_s)
    passed_s = clock_s if end_s is None else min(end_s, clock_s)
    return PhaseSummary(
        name=time.name,
        begin_s=begin_s,
        end_s=end_s,
        requests=account.accounted if planned is None else planned,
        planned_rps=measure_planned_rps(spec, begin_s, passed_s),
        targets=build_targets_of_phase(spec, accounts, time.name, passed_s - begin_s),
        **build_figures(account, passed_s - begin_s),
    )


def measure_planned_rps(spec: Spec, begin_s: float, end_s: float) -> float | None:
    """The mean rate that is planned between two times of the activity; None without a rate."""
    schedule = build_phase_plan(spec).schedule
    return None if schedule is None else round(float(schedule.mean_rate(begin_s, end_s) or 0), 1)
