"""Builds the summary of a run from its snapshot."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from oku_coordinator.ledger.rules.phase_plan import MOST_PLANS
from oku_coordinator.ledger.rules.snapshots import Snapshot, ThresholdBasis
from oku_coordinator.ledger.storage.records import HookRecord, RunRecord
from oku_coordinator.runs.summary.part_summaries import (
    FigureCache,
    build_clock_counts,
    build_inner_requests,
    build_request_figures,
    measure_part_rates,
    measure_planned_rps,
    measure_sent_rps,
    summarize_failures,
    summarize_phases,
    summarize_targets,
)
from oku_coordinator.runs.summary.stretch_watch import list_ends
from oku_coordinator.runs.summary.threshold_summaries import judge_thresholds
from oku_core.accounting import hdr
from oku_core.accounting.account import Account
from oku_core.accounting.measured_time import DUE_TIMES, Time
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.schedule.due_counts import DueCounts
from oku_core.spec.description import describe_load, describe_target
from oku_core.spec.load import build_schedule
from oku_core.spec.load_plan import read_clock_s
from oku_core.spec.spec import Spec
from oku_core.summary.plan_check import Load, PlanSummary, check_plan, list_planned
from oku_core.summary.summary import (
    CompletesSummary,
    HookState,
    HookSummary,
    ServersSummary,
    Summary,
    Unit,
    find_imbalance,
)
from oku_core.summary.validity import Flag, WindowFill, build_validity, flag_off_plan, flag_unknown_served
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict, sum_up

_TIMED_HOOKS = frozenset({HookState.DONE, HookState.FAILED})


def build_summary(
    snapshot: Snapshot, now: float, notices: Sequence[str] = (), figures: FigureCache | None = None
) -> Summary:
    """The summary of a run.

    Args:
        snapshot: the data from the ledger.
        now: Unix time.
        notices: its notices.
        figures: caches the figures of unchanged accounts.
    """
    figures = figures or FigureCache()
    record, account = snapshot.record, snapshot.account
    active_s = record.measure_active_s(now)
    clock_s = active_s if snapshot.course is None else read_clock_s(snapshot.course.periods, now)
    # The warm-up is not measured.
    warm_up_s = record.spec.warm_up_s
    measured = snapshot.accounts.parts.fetch_measured()
    measured_s = clock_s - (warm_up_s or 0.0)
    counts = build_clock_counts(record.spec, snapshot.course)
    imbalance = snapshot.breach or find_imbalance(
        state=record.state,
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        outcomes=account.outcomes,
        resent_at_most=record.resent_at_most + snapshot.lengths.leased,
        # While requests are under way, the two counts belong to different instants.
        served=record.served if record.is_at_rest else None,
    )
    validity = build_validity(
        snapshot.flags,
        outcomes=account.outcomes,
        resent_at_most=record.resent_at_most,
        periods=record.periods,
        imbalance=imbalance,
        fill=WindowFill(record.watched_s, record.underfilled_s, len(snapshot.workers)),
    )
    plan = _build_plan(snapshot)
    if plan is not None and plan.off_seconds:
        validity.append(flag_off_plan(plan, account.accounted))
    if record.is_at_rest and record.spec.brings_servers and account.accounted and record.served is None:
        validity.append(flag_unknown_served(account.accounted))
    thresholds = _judge_thresholds(snapshot, clock_s, is_balanced=imbalance is None)
    # A run that ended without a request had no time or no worker for one.
    has_results = account.accounted > 0 or record.state is RunState.COMPLETED
    is_nothing_ok = record.state in FINAL_STATES and has_results and not account.outcomes[0]
    return Summary(
        run=record.run,
        name=record.name,
        state=record.state,
        reason=record.reason,
        notices=list(notices),
        engine=record.engine.engine,
        engine_reason=record.engine.reason,
        unit=Unit.ITERATION if record.spec.runs_user_code else Unit.REQUEST,
        target=describe_target(record.spec),
        load=record.load if snapshot.retry else describe_load(record.spec),
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        resent_at_most=record.resent_at_most,
        started_at=format_time(record.started_at),
        ended_at=format_time(record.ended_at),
        active_s=round(active_s, 3),
        queued_s=round(record.measure_queued_s(now), 3),
        watched_s=round(record.watched_s, 3),
        underfilled_s=round(record.underfilled_s, 3),
        throughput_rps=measure_sent_rps(measured.outcomes, measured_s),
        completed_rps=measure_part_rates(measured, warm_up_s or 0.0, clock_s, counts).completed_rps,
        planned_rps=measure_planned_rps(record.spec, warm_up_s or 0.0, clock_s),
        phases=summarize_phases(record.spec, snapshot.accounts, clock_s, snapshot.course, figures),
        targets=summarize_targets(record.spec, snapshot.accounts, measured_s),
        inner_requests=build_inner_requests(snapshot.accounts, measured_s),
        hooks=[_build_hook(hook) for hook in snapshot.hooks],
        failures=summarize_failures(
            record.spec, snapshot.accounts.list_reasons(), tracebacks=snapshot.tracebacks
        ),
        completes=_build_completes(snapshot),
        plan=plan,
        verdict=_sum_up(record, thresholds, is_nothing_ok=is_nothing_ok),
        thresholds=thresholds,
        workers=snapshot.workers,
        processes=snapshot.processes,
        servers=ServersSummary(served=record.served) if record.served is not None else None,
        validity=validity,
        **build_request_figures(account, measured),
        **_build_histograms(measured),
    )


def _judge_thresholds(snapshot: Snapshot, clock_s: float, *, is_balanced: bool) -> list[ThresholdSummary]:
    basis = ThresholdBasis(
        record=snapshot.record,
        accounts=snapshot.accounts,
        flags=snapshot.flags,
        thresholds=snapshot.thresholds,
        course=(snapshot.course or snapshot.closed_course) if snapshot.record.is_at_rest else None,
    )
    return judge_thresholds(basis, clock_s, is_balanced=is_balanced)


def _sum_up(
    record: RunRecord, thresholds: Sequence[ThresholdSummary], *, is_nothing_ok: bool
) -> ThresholdVerdict | None:
    """The verdict on a run; None for a paused run, which can continue, and without workers."""
    if record.state is RunState.PAUSED or record.is_given_up:
        return None
    return sum_up([each.verdict for each in thresholds], is_nothing_ok=is_nothing_ok)


def _build_plan(snapshot: Snapshot) -> PlanSummary | None:
    """How the arrivals of a run kept to its schedule; None without a rate, or before the first request."""
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
    spec = snapshot.record.spec
    return Load(
        account=snapshot.account,
        peak_rps=_build_due_counts(spec).peak_rps,
        window=spec.concurrency,
    )


def _build_hook(record: HookRecord) -> HookSummary:
    """The summary of a hook that was begun, or is due."""
    ended_at = record.ended_at if record.state in _TIMED_HOOKS else None
    return HookSummary(
        hook=record.hook,
        state=record.state,
        calls=record.tries,
        worker=record.worker,
        took_s=None if ended_at is None else round(max(0.0, ended_at - record.since), 3),
        error=record.error,
        traceback=record.traceback,
    )


def _build_completes(snapshot: Snapshot) -> CompletesSummary | None:
    retry = snapshot.retry
    if retry is None:
        return None
    return CompletesSummary(
        run=retry.origin,
        retried=retry.retried,
        requests=retry.requests,
        ok=retry.ok,
        ok_with_retries=retry.ok + snapshot.account.outcomes[0],
        unlisted=retry.unlisted,
        unjudged=retry.unjudged,
    )


def _build_histograms(measured: Account) -> dict[str, Any]:
    return {
        "histogram": hdr.encode_base64(measured.histogram(Time.LATENCY)),
        **{
            f"{time}_histogram": hdr.encode_base64(measured.times[time])
            for time in DUE_TIMES
            if time in measured.times
        },
    }


def format_time(unix_s: float | None) -> str | None:
    """Unix time as ISO 8601 in UTC, to the millisecond."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
