"""Makes the summary of how a run kept to its schedule, from what the ledger keeps of it."""

import math
from functools import lru_cache

from oku_coordinator.ledger.rules.phase_plan import MOST_PLANS
from oku_coordinator.ledger.storage.records import Snapshot
from oku_core.results.plan_causes import Load
from oku_core.results.plan_check import check_plan, list_planned
from oku_core.results.summary import Flag, PlanSummary
from oku_core.schedule.active_period import ActivePeriod
from oku_core.schedule.due_counts import DueCounts
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec


def build_plan(snapshot: Snapshot) -> PlanSummary | None:
    """How the arrivals of a run kept to its schedule; None without a rate, or when nothing was sent yet."""
    course = snapshot.course
    if course is None or not course.periods:
        return None
    skew_s = max((worst for flag, _, worst in snapshot.flags if flag is Flag.CLOCK_SKEW), default=0.0)
    periods = [
        (period.build_period(), math.inf if period.stop_s is None else period.stop_s)
        for period in course.periods
    ]
    if snapshot.lengths.accounted == snapshot.record.requests:
        # Nothing more is due in the second in which the last request was over.
        period, stop_s = periods[-1]
        periods[-1] = (period, _round_up(period, stop_s))
    seconds = list_planned(course.series, periods, _build_due_counts(snapshot.record.spec), course.settled_to)
    return check_plan(seconds, _build_load(snapshot), skew_s)


def _round_up(period: ActivePeriod, stop_s: float) -> float:
    """What the clock of the schedule says at the end of the second of Unix time in which it says `stop_s`."""
    return stop_s if math.isinf(stop_s) else period.schedule_s(math.ceil(period.unix_time(stop_s)))


@lru_cache(MOST_PLANS)
def _build_due_counts(spec: Spec) -> DueCounts:
    return DueCounts(build_schedule(spec))


def _build_load(snapshot: Snapshot) -> Load:
    spec, account = snapshot.record.spec, snapshot.account
    workers = max(1, sum(not worker.lost for worker in snapshot.workers))
    return Load(
        outcomes=account.outcomes,
        not_sent=account.not_sent,
        latency=account.latency,
        peak_rps=_build_due_counts(spec).peak_rps,
        window=spec.find_window(workers) * workers,
        is_own_window=not spec.shares_concurrency,
    )
