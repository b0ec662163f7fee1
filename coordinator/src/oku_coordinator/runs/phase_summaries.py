"""Makes the summaries of the phases of a run from its accounts."""

from collections.abc import Iterator, Sequence

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.run_account import Account, RunAccount
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts, count_sent
from oku_core.results.summary import NotSentCounts, OutcomeCounts, PhaseSummary, build_latency_summary
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
        account = _sum_up(accounts, time.name)
        yield _build_phase(spec, time, account, planned.get(time.name, account.accounted), clock_s)


def _sum_up(accounts: RunAccount, phase: str) -> Account:
    return accounts.build_total(lambda name: name[0] == phase)


def _build_phase(
    spec: Spec, time: PhaseTime, account: Account, requests: int, clock_s: float
) -> PhaseSummary:
    begin_s, end_s = float(time.begin_s), None if time.end_s is None else float(time.end_s)
    passed_s = clock_s if end_s is None else min(end_s, clock_s)
    return PhaseSummary(
        name=time.name,
        begin_s=begin_s,
        end_s=end_s,
        requests=requests,
        outcomes=OutcomeCounts(**build_outcome_counts(account.outcomes)),
        not_sent=NotSentCounts(**build_cause_counts(account.not_sent)),
        statuses=dict(sorted(account.statuses.items())),
        bytes_received=account.bytes_received,
        rate_rps=measure_rate(account.outcomes, passed_s - begin_s),
        planned_rps=measure_planned_rps(spec, begin_s, passed_s),
        latency_ms=build_latency_summary(account.latency),
        response_time_ms=build_latency_summary(account.response_time),
        lateness_ms=build_latency_summary(account.lateness),
    )


def measure_rate(outcomes: Sequence[int], seconds: float) -> float:
    """How many requests were sent and have ended per second; 0 if no time has passed."""
    return round(count_sent(outcomes) / seconds, 1) if seconds > 0 else 0.0


def measure_planned_rps(spec: Spec, begin_s: float, end_s: float) -> float | None:
    """The mean rate that is planned between two times of the activity; None without a rate."""
    schedule = build_phase_plan(spec).schedule
    return None if schedule is None else round(float(schedule.mean_rate(begin_s, end_s) or 0), 1)
