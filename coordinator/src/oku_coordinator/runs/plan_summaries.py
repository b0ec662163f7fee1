"""Makes the summary of how a run kept to its schedule, from what the ledger keeps of it."""

from functools import lru_cache

from oku_coordinator.ledger.rules.phase_plan import MOST_PLANS
from oku_coordinator.ledger.storage.records import Snapshot
from oku_coordinator.runs.period_ends import list_ends
from oku_core.results.plan_causes import Load
from oku_core.results.plan_check import check_plan, list_planned
from oku_core.results.summary import Flag, PlanSummary
from oku_core.schedule.due_counts import DueCounts
from oku_core.spec.load import build_schedule
from oku_core.spec.spec import Spec


def build_plan(snapshot: Snapshot) -> PlanSummary | None:
    """How the arrivals of a run kept to its schedule; None without a rate, or when nothing was sent yet."""
    course = snapshot.course
    if course is None or not course.periods:
        return None
    skew_s = max((worst for flag, _, worst in snapshot.flags if flag is Flag.CLOCK_SKEW), default=0.0)
    is_complete = snapshot.lengths.accounted == snapshot.record.requests
    periods = list_ends(course.periods, is_complete=is_complete)
    seconds = list_planned(course.series, periods, _build_due_counts(snapshot.record.spec), course.settled_to)
    return check_plan(seconds, _build_load(snapshot), skew_s)


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
