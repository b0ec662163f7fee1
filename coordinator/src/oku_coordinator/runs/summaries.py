"""Makes the summary of a run from what the ledger keeps of it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from oku_coordinator.ledger.storage.records import RunRecord, Snapshot, ThresholdBasis
from oku_coordinator.ledger.storage.run_account import PartName
from oku_coordinator.runs.account_figures import measure_sent_rps
from oku_coordinator.runs.failure_summaries import build_failures
from oku_coordinator.runs.hook_summaries import build_hooks
from oku_coordinator.runs.inner_summaries import build_inner_requests
from oku_coordinator.runs.phase_summaries import (
    build_clock_counts,
    build_phases,
    measure_planned_rps,
    measure_rates,
)
from oku_coordinator.runs.plan_summaries import build_plan
from oku_coordinator.runs.target_summaries import build_targets
from oku_coordinator.runs.threshold_summaries import judge_thresholds
from oku_core.accounting import hdr
from oku_core.accounting.histogram import Histogram
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.results.summary import (
    CompletesSummary,
    NotSentCounts,
    OutcomeCounts,
    ServersSummary,
    Summary,
    Unit,
    build_latency_summary,
    find_imbalance,
)
from oku_core.results.timing_summary import build_timing_summary
from oku_core.results.validity import WindowFill, build_validity, flag_off_plan, flag_unknown_served
from oku_core.spec.description import describe_load, describe_target
from oku_core.spec.load import WARM_UP
from oku_core.spec.load_plan import read_clock_s
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict, sum_up


def build_summary(snapshot: Snapshot, now: float, notices: Sequence[str] = ()) -> Summary:
    """The summary of a run at `now`, in Unix time, with notices on what it waits for."""
    record, account = snapshot.record, snapshot.account
    active_s = record.measure_active_s(now)
    clock_s = active_s if snapshot.course is None else read_clock_s(snapshot.course.periods, now)
    # The warm-up is not what is measured.
    warm_up_s = record.spec.warm_up_s
    measured = account if warm_up_s is None else snapshot.accounts.build_total(_is_measured)
    measured_s = clock_s - (warm_up_s or 0.0)
    counts = build_clock_counts(record.spec, snapshot.course)
    imbalance = snapshot.breach or find_imbalance(
        state=record.state,
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        outcomes=account.outcomes,
        resent_at_most=record.resent_at_most + snapshot.lengths.leased,
        # While requests are under way, the two counts are not of the same instant.
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
    plan = build_plan(snapshot)
    if plan is not None and plan.off_seconds:
        validity.append(flag_off_plan(plan, account.accounted))
    if record.is_at_rest and record.spec.brings_servers and account.accounted and record.served is None:
        validity.append(flag_unknown_served(account.accounted))
    thresholds = _judge_thresholds(snapshot, clock_s, is_balanced=imbalance is None)
    # A run that has come to its end without any request had no time for one, or nobody to send it.
    has_results = account.accounted > 0 or record.state is RunState.COMPLETED
    is_nothing_ok = record.state in FINAL_STATES and has_results and not account.outcomes[0]
    return Summary(
        run=record.run,
        name=record.name,
        state=record.state,
        reason=record.reason,
        notices=list(notices),
        engine=record.spec.engine,
        unit=Unit.ITERATION if record.spec.runs_user_code else Unit.REQUEST,
        target=describe_target(record.spec),
        load=record.load if snapshot.retry else describe_load(record.spec),
        requests=record.requests,
        accounted=snapshot.lengths.accounted,
        resent_at_most=record.resent_at_most,
        outcomes=OutcomeCounts(**build_outcome_counts(account.outcomes)),
        not_sent=NotSentCounts(**build_cause_counts(account.not_sent)),
        statuses=dict(sorted(account.statuses.items())),
        bytes_received=account.bytes_received,
        started_at=format_time(record.started_at),
        ended_at=format_time(record.ended_at),
        active_s=round(active_s, 3),
        queued_s=round(record.measure_queued_s(now), 3),
        watched_s=round(record.watched_s, 3),
        underfilled_s=round(record.underfilled_s, 3),
        throughput_rps=measure_sent_rps(measured.outcomes, measured_s),
        completed_rps=measure_rates(measured, warm_up_s or 0.0, clock_s, counts).completed_rps,
        planned_rps=measure_planned_rps(record.spec, warm_up_s or 0.0, clock_s),
        latency_ms=build_latency_summary(measured.latency),
        response_time_ms=build_latency_summary(measured.response_time),
        lateness_ms=build_latency_summary(measured.lateness),
        timing_ms=build_timing_summary(measured.latency, measured.timings),
        histogram=hdr.encode_base64(measured.latency),
        response_time_histogram=_encode(measured.response_time),
        lateness_histogram=_encode(measured.lateness),
        phases=build_phases(record.spec, snapshot.accounts, clock_s, snapshot.course),
        targets=build_targets(record.spec, snapshot.accounts, measured_s),
        inner_requests=build_inner_requests(snapshot.accounts, measured_s),
        hooks=build_hooks(snapshot.hooks),
        failures=build_failures(
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
    """The verdict on a run; one that is paused can go on, one without workers has tested nothing."""
    if record.state is RunState.PAUSED or record.is_given_up:
        return None
    return sum_up([each.verdict for each in thresholds], is_nothing_ok=is_nothing_ok)


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
    )


def _is_measured(name: PartName) -> bool:
    return name[0] != WARM_UP


def _encode(histogram: Histogram) -> str:
    return hdr.encode_base64(histogram) if histogram.total else ""


def format_time(unix_s: float | None) -> str | None:
    """Unix time as ISO 8601 in UTC, to the millisecond."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
