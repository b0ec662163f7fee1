"""Builds the summaries of the parts of a run from its accounts: phases, targets, names of inner requests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.storage.run_account import PartAccounts, RunAccount
from oku_coordinator.ledger.storage.schedule_records import Course
from oku_coordinator.runs.summary.clock_counts import ClockCounts
from oku_core.accounting.account import NO_REQUESTS, Account
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import (
    OUTCOMES,
    ReasonCount,
    build_cause_counts,
    build_outcome_counts,
    count_answered,
    count_sent,
)
from oku_core.spec.description import RequestLines
from oku_core.spec.load import PhaseTime, list_phase_times
from oku_core.spec.spec import Spec
from oku_core.spec.target import Target
from oku_core.summary.latency_summary import build_latency_summary, build_timing_summary
from oku_core.summary.request_summary import (
    FailureSummary,
    InnerSummary,
    NotSentCounts,
    OutcomeCounts,
    PhaseSummary,
    TargetSummary,
    measure_rate,
)

MOST_FAILURES, MOST_INNER_FAILURES, MOST_IN_TICK = 100, 20, 3
"""The most failure reasons in a summary, of a name of inner requests, and in a tick."""


class Rates(NamedTuple):
    """Sent and answered requests per second of a part of a run's time."""

    sent_rps: float
    completed_rps: float


def build_request_figures(account: Account, measured: Account | None = None) -> dict[str, Any]:
    """The fields of `RequestSummary`.

    Args:
        account: the counts.
        measured: the account with the distributions; the same one by default.
    """
    measured = measured or account
    return {
        **_build_answers(account, measured, LIVE_TIMES),
        "not_sent": NotSentCounts(**build_cause_counts(account.not_sent)),
        "timing_ms": build_timing_summary(measured),
    }


class FigureCache:
    """Caches the figures of frozen accounts.

    It keeps the latest ones of each part and each phase, as many as one run has.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None], tuple[Account, dict[str, Any]]] = {}

    def build(self, key: tuple[str, str | None], account: Account) -> dict[str, Any]:
        """The fields of `RequestSummary` for the account of a part, or of a phase, whose name is None."""
        known = self._known.get(key)
        if known is None or known[0] is not account:
            known = self._known[key] = account, build_request_figures(account)
        return known[1]


def _build_answers(account: Account, measured: Account, times: Iterable[Time]) -> dict[str, Any]:
    """The fields of `AnswerSummary`, with the figures of these times."""
    return {
        "outcomes": OutcomeCounts(**build_outcome_counts(account.outcomes)),
        "statuses": dict(sorted(account.statuses.items())),
        "bytes_received": account.bytes_received,
        **{f"{time}_ms": build_latency_summary(measured.histogram(time)) for time in times},
    }


def measure_sent_rps(outcomes: Sequence[int], seconds: float) -> float:
    """The rate of ended requests that were sent, rounded for summaries."""
    return round(measure_rate(count_sent(outcomes), seconds), 1)


def summarize_targets(spec: Spec, accounts: RunAccount, measured_s: float) -> list[TargetSummary]:
    """The summaries of all targets, in the order of the spec; none if the spec names none.

    Args:
        spec: the spec of the run.
        accounts: its account.
        measured_s: the active seconds of the run after its warm-up.
    """
    if not spec.targets:
        return []
    return [_build_target(target, accounts.parts, measured_s) for target in spec.targets]


def _build_target(target: Target, accounts: PartAccounts, measured_s: float) -> TargetSummary:
    account, measured = accounts.fetch_whole(target.name), accounts.fetch_measured(target.name)
    return TargetSummary(
        name=target.name,
        weight=target.weight,
        requests=account.accounted,
        rate_rps=measure_sent_rps(measured.outcomes, measured_s),
        **build_request_figures(account, measured),
    )


def summarize_phases(
    spec: Spec,
    accounts: RunAccount,
    clock_s: float,
    course: Course | None = None,
    figures: FigureCache | None = None,
) -> list[PhaseSummary]:
    """The summaries of all phases, in their order; none if the run has only one, without a name.

    Args:
        spec: the spec of the run.
        accounts: its account.
        clock_s: the time of its clock: its active seconds.
        course: its course by the clock, with a rate.
        figures: caches the figures of unchanged accounts.
    """
    figures = figures or FigureCache()
    times = list_phase_times(spec)
    if [time.name for time in times] == [""]:
        return []
    schedule = build_phase_plan(spec).schedule
    due = {phase.name: phase.stop - phase.first for phase in schedule.phases} if schedule else {}
    counts = build_clock_counts(spec, course)
    return [
        _build_phase(_Phase(spec, time, due.get(time.name), accounts.parts, figures), clock_s, counts)
        for time in times
    ]


class _Phase(NamedTuple):
    """A phase that is summarized, with its number of due requests."""

    spec: Spec
    time: PhaseTime
    due: int | None
    accounts: PartAccounts
    figures: FigureCache


def _build_phase(phase: _Phase, clock_s: float, counts: ClockCounts | None) -> PhaseSummary:
    time = phase.time
    account = phase.accounts.fetch_phase(time.name)
    begin_s, end_s = float(time.begin_s), None if time.end_s is None else float(time.end_s)
    passed_s = clock_s if end_s is None else min(end_s, clock_s)
    rates = measure_part_rates(account, begin_s, passed_s, counts)
    return PhaseSummary(
        name=time.name,
        begin_s=begin_s,
        end_s=end_s,
        requests=account.accounted,
        due=phase.due,
        completed=count_answered(account.outcomes),
        sent_rps=rates.sent_rps,
        completed_rps=rates.completed_rps,
        planned_rps=measure_planned_rps(phase.spec, begin_s, passed_s),
        targets=[_build_target_of_phase(target, phase, passed_s - begin_s) for target in phase.spec.targets],
        **phase.figures.build((time.name, None), account),
    )


def _build_target_of_phase(target: Target, phase: _Phase, seconds: float) -> TargetSummary:
    """The summary of a target in one phase; its warm-up is an ordinary phase."""
    name = phase.time.name, target.name
    account = phase.accounts.get(name, NO_REQUESTS)
    return TargetSummary(
        name=target.name,
        weight=target.weight,
        requests=account.accounted,
        rate_rps=measure_sent_rps(account.outcomes, seconds),
        **phase.figures.build(name, account),
    )


def build_clock_counts(spec: Spec, course: Course | None) -> ClockCounts | None:
    """The counts of sent and answered requests by a run's clock; None without a rate."""
    return None if course is None else ClockCounts(course, float(spec.length_s or math.inf))


def measure_part_rates(account: Account, begin_s: float, end_s: float, counts: ClockCounts | None) -> Rates:
    """Sent and answered requests per second between two times of a run's clock.

    In a closed run, a request is sent when another one ends, so both rates are those of the requests taken in
    this time. With a rate, they are the requests sent and answered in this time, whenever they were due. The
    time before the fastest possible answer since the start of a run is left out.

    Args:
        account: the requests that belong to this time.
        begin_s: its start.
        end_s: its end, or the current time of the clock.
        counts: the counts of the run, with a rate.
    """
    if counts is None:
        answered = measure_rate(count_answered(account.outcomes), end_s - begin_s)
        return Rates(measure_sent_rps(account.outcomes, end_s - begin_s), round(answered, 1))
    found = counts.count(begin_s, end_s)
    fastest_s = account.histogram(Time.LATENCY).min_us / 1e6
    open_s = found.seconds if begin_s else found.drop_dead_time(fastest_s)
    return Rates(
        round(measure_rate(found.sent, found.seconds), 1), round(measure_rate(found.answered, open_s), 1)
    )


def measure_planned_rps(spec: Spec, begin_s: float, end_s: float) -> float | None:
    """The mean planned rate between two times of the activity; None without a rate."""
    schedule = build_phase_plan(spec).schedule
    return None if schedule is None else round(float(schedule.mean_rate(begin_s, end_s) or 0), 1)


def build_inner_requests(accounts: RunAccount, measured_s: float) -> list[InnerSummary]:
    """The summaries of all names of inner requests, sorted.

    Args:
        accounts: the account of the run.
        measured_s: its active seconds after its warm-up.
    """
    return [_build_inner(name, accounts.inner, measured_s) for name in sorted(accounts.inner.names)]


def _build_inner(name: str, accounts: PartAccounts, measured_s: float) -> InnerSummary:
    account, measured = accounts.fetch_whole(name), accounts.fetch_measured(name)
    ranked = sorted(account.reasons.values(), key=lambda count: (-count.requests, count.key))
    return InnerSummary(
        name=name,
        requests=account.accounted,
        rate_rps=measure_sent_rps(measured.outcomes, measured_s),
        failures=[_build_failure(count) for count in ranked[:MOST_INNER_FAILURES]],
        **_build_answers(account, measured, [Time.LATENCY]),
    )


def summarize_failures(
    spec: Spec,
    reasons: Iterable[tuple[str, ReasonCount]],
    most: int = MOST_FAILURES,
    tracebacks: Mapping[str, str] | None = None,
) -> list[FailureSummary]:
    """The failures of all phases together, by target, outcome and reason, the most frequent first.

    Args:
        spec: the spec of the run.
        reasons: the reasons of each part of its account, with the target.
        most: the most reasons to return.
        tracebacks: the tracebacks of exceptions of user code, by reason.
    """
    counts: dict[tuple[str, int, str], ReasonCount] = {}
    for target, count in reasons:
        known = counts.get((target, *count.key))
        counts[target, *count.key] = count if known is None else known.join(count)
    if not counts:
        return []
    ranked = sorted(counts.items(), key=lambda item: (-item[1].requests, item[0]))
    # Summaries go into reports and to Loki.
    lines = None if spec.runs_user_code else RequestLines(spec, hides_queries=True)
    return [
        _build_failure(
            count,
            target=target,
            sample=lines.build(count.first).text if lines and count.first >= 0 else "",
            traceback=(tracebacks or {}).get(reason, ""),
        )
        for (target, _, reason), count in ranked[:most]
    ]


def _build_failure(count: ReasonCount, **rest: str) -> FailureSummary:
    return FailureSummary(
        outcome=OUTCOMES[count.outcome],
        reason=count.reason,
        requests=count.requests,
        first_index=count.first if count.first >= 0 else None,
        last_index=count.last if count.first >= 0 else None,
        **rest,
    )
