"""Makes the summaries of the phases of a run from its accounts."""

import math
from typing import NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.run_account import Account, RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course
from oku_coordinator.runs.account_figures import build_figures, measure_sent_rps
from oku_coordinator.runs.clock_counts import ClockCounts
from oku_coordinator.runs.target_summaries import build_targets_of_phase
from oku_core.accounting.outcome import count_answered
from oku_core.results.rates import measure_rate
from oku_core.results.summary import PhaseSummary
from oku_core.spec.load import PhaseTime, list_phase_times
from oku_core.spec.spec import Spec


class Rates(NamedTuple):
    """What was sent and what was answered per second of a part of a run's time."""

    sent_rps: float
    completed_rps: float


def build_phases(
    spec: Spec, accounts: RunAccount, clock_s: float, course: Course | None = None
) -> list[PhaseSummary]:
    """The summaries of all phases, in their order; none if the run has only one, without a name.

    Args:
        spec: of the run.
        accounts: what its requests sum to.
        clock_s: what its clock says: for how many seconds it has been active.
        course: how it went by the clock, with a rate.
    """
    times = list_phase_times(spec)
    if [time.name for time in times] == [""]:
        return []
    schedule = build_phase_plan(spec).schedule
    due = {phase.name: phase.stop - phase.first for phase in schedule.phases} if schedule else {}
    counts = build_clock_counts(spec, course)
    return [_build_phase(spec, time, accounts, due.get(time.name), clock_s, counts) for time in times]


def build_clock_counts(spec: Spec, course: Course | None) -> ClockCounts | None:
    """What was sent and answered by the clock of a run; None without a rate."""
    return None if course is None else ClockCounts(course, float(spec.length_s or math.inf))


def measure_rates(account: Account, begin_s: float, end_s: float, counts: ClockCounts | None) -> Rates:
    """What was sent and answered per second between two times of a run's clock.

    In a closed run a request is sent as another one has ended, so both are those of the requests that were
    taken in this time. With a rate they are of what was sent and answered in it, whenever that was due;
    before the fastest answer since the start of a run there could be none.

    Args:
        account: of the requests that belong to this time.
        begin_s: when it begins.
        end_s: when it ends, or what the clock says now.
        counts: those of the run, with a rate.
    """
    if counts is None:
        answered = measure_rate(count_answered(account.outcomes), end_s - begin_s)
        return Rates(measure_sent_rps(account.outcomes, end_s - begin_s), round(answered, 1))
    found = counts.count(begin_s, end_s)
    open_s = found.seconds if begin_s else found.leave_out(account.latency.min_us / 1e6)
    return Rates(
        round(measure_rate(found.sent, found.seconds), 1), round(measure_rate(found.answered, open_s), 1)
    )


def _build_phase(
    spec: Spec,
    time: PhaseTime,
    accounts: RunAccount,
    due: int | None,
    clock_s: float,
    counts: ClockCounts | None,
) -> PhaseSummary:
    account = accounts.build_total(lambda name: name[0] == time.name)
    begin_s, end_s = float(time.begin_s), None if time.end_s is None else float(time.end_s)
    passed_s = clock_s if end_s is None else min(end_s, clock_s)
    rates = measure_rates(account, begin_s, passed_s, counts)
    return PhaseSummary(
        name=time.name,
        begin_s=begin_s,
        end_s=end_s,
        requests=account.accounted,
        due=due,
        completed=count_answered(account.outcomes),
        sent_rps=rates.sent_rps,
        completed_rps=rates.completed_rps,
        planned_rps=measure_planned_rps(spec, begin_s, passed_s),
        targets=build_targets_of_phase(spec, accounts, time.name, passed_s - begin_s),
        **build_figures(account),
    )


def measure_planned_rps(spec: Spec, begin_s: float, end_s: float) -> float | None:
    """The mean rate that is planned between two times of the activity; None without a rate."""
    schedule = build_phase_plan(spec).schedule
    return None if schedule is None else round(float(schedule.mean_rate(begin_s, end_s) or 0), 1)
