"""Judges the thresholds of a run from the data in the ledger."""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

import msgspec

from oku_coordinator.ledger.rules.phase_plan import build_phase_plan
from oku_coordinator.ledger.rules.snapshots import ThresholdBasis
from oku_coordinator.ledger.storage.records import RunRecord, ThresholdRecord
from oku_coordinator.ledger.storage.run_account import PartAccounts
from oku_coordinator.ledger.storage.schedule_records import Course
from oku_coordinator.runs.summary.stretch_watch import advance, list_ends
from oku_core.accounting.account import NO_REQUESTS, Account
from oku_core.accounting.run_state import FINAL_STATES, RunState
from oku_core.results.active_seconds import SeriesSeconds
from oku_core.schedule.schedule import Schedule
from oku_core.spec.load import WARM_UP, PhaseTime, list_phase_times
from oku_core.spec.load_plan import build_load_plan
from oku_core.spec.request_template import count_target_requests
from oku_core.spec.spec import OPEN_END, Engine, Spec
from oku_core.spec.values.threshold import Threshold
from oku_core.summary.validity import Flag
from oku_core.thresholds.judging import judge
from oku_core.thresholds.measurement import Measurement
from oku_core.thresholds.stretches import Stretch, looks_live
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

_STRAINS = frozenset({Flag.WORKER_SATURATED, Flag.LOOP_LAG})
_UNKNOWN = ThresholdRecord()
_Place = TypeVar("_Place", int, float)


def judge_thresholds(
    basis: ThresholdBasis, clock_s: float, *, is_balanced: bool = True
) -> list[ThresholdSummary]:
    """The current verdicts on the thresholds of a run, in their order.

    Args:
        basis: the data from the ledger.
        clock_s: the active seconds of the run.
        is_balanced: whether its account balances.
    """
    return [
        _judge(threshold, basis, basis.thresholds.get(number, _UNKNOWN), clock_s, is_balanced=is_balanced)
        for number, threshold in enumerate(basis.record.spec.thresholds)
    ]


def _judge(
    threshold: Threshold, basis: ThresholdBasis, kept: ThresholdRecord, clock_s: float, *, is_balanced: bool
) -> ThresholdSummary:
    if threshold.over_s is None:
        if basis.record.spec.runs_user_code and threshold.target is not None:
            return _judge_inner(threshold, basis, kept, clock_s, is_balanced=is_balanced)
        measured = _measure(threshold, basis, clock_s, is_balanced=is_balanced)
        return judge(threshold, measured, is_lost=kept.lost_at is not None)
    return _judge_stretches(threshold, basis, kept, is_balanced=is_balanced)


def _judge_inner(
    threshold: Threshold, basis: ThresholdBasis, kept: ThresholdRecord, clock_s: float, *, is_balanced: bool
) -> ThresholdSummary:
    """Judge the inner requests of a name; the summary notes if there are none."""
    measured = _measure_inner(threshold, basis, clock_s, is_balanced=is_balanced)
    summary = judge(threshold, measured, is_lost=kept.lost_at is not None)
    if measured.is_over and not measured.total and summary.verdict is ThresholdVerdict.UNDECIDED:
        detail = f"no request was counted under the name {threshold.target}"
        return msgspec.structs.replace(summary, detail=detail)
    return summary


def _judge_stretches(
    threshold: Threshold, basis: ThresholdBasis, kept: ThresholdRecord, *, is_balanced: bool
) -> ThresholdSummary:
    record = basis.record
    if basis.course is not None and not looks_live(threshold):
        kept = _finish(threshold, record, basis.course, kept)
    verdict, detail = ThresholdVerdict.UNDECIDED, ""
    if not is_balanced:
        detail = "the account does not balance"
    elif kept.lost_at is not None or kept.loss is not None:
        verdict = ThresholdVerdict.FAILED
    elif record.state == RunState.COMPLETED and kept.worst is not None:
        verdict = ThresholdVerdict.PASSED
    elif record.state == RunState.COMPLETED:
        detail = _explain_unjudged(threshold, kept.longest_s)
    elif record.state in FINAL_STATES:
        detail = "the run was cut short"
    return ThresholdSummary(
        expression=str(threshold),
        verdict=verdict,
        value=_drop_infinite(kept.worst),
        limit=float(threshold.limit),
        unit=threshold.unit,
        holds=None if kept.worst is None else kept.lost_at is None and kept.loss is None,
        detail=detail,
        lost_s=None if kept.loss is None else round(kept.loss.clock_s, 3),
        lost_phase=None if kept.loss is None else kept.loss.phase,
        lost_value=None if kept.loss is None else _drop_infinite(kept.loss.value),
    )


def _finish(
    threshold: Threshold, record: RunRecord, course: Course, kept: ThresholdRecord
) -> ThresholdRecord:
    """Complete the record of a threshold with the remaining seconds of a run at rest."""
    periods = list_ends(course.periods, is_complete=record.state == RunState.COMPLETED)
    seconds = SeriesSeconds(build_load_plan(record.spec)).list_new(course.series, periods, course.settled_to)
    return advance(Stretch(threshold), seconds, kept)


def _explain_unjudged(threshold: Threshold, longest_s: float) -> str:
    over_s = float(threshold.over_s or 0)
    if longest_s >= over_s:
        return "there are no requests to judge"
    what = "the run" if threshold.phase is None else f"phase {threshold.phase}"
    most = f": {longest_s:.3g} s at most" if longest_s else ""
    return f"{what} had no {over_s:g} s in a row that could be judged{most}"


def _drop_infinite(value: float | None) -> float | None:
    """A value for JSON, which cannot represent the infinite time of a request without an answer."""
    return value if value is not None and math.isfinite(value) else None


def _measure(
    threshold: Threshold, basis: ThresholdBasis, clock_s: float, *, is_balanced: bool
) -> Measurement:
    record = basis.record
    phases = _list_phases(threshold, record.spec)
    schedule = build_phase_plan(record.spec).schedule
    account = _pick(basis.accounts.parts, threshold, threshold.target)
    seconds = list(_iter_seconds(phases, clock_s))
    return Measurement(
        parts=[account],
        rest=max(0, _find_rest(basis, threshold, {time.name for time in phases}, account)),
        is_rest_exact=schedule is not None or _ends_by_count(record.spec),
        is_over=record.state == RunState.COMPLETED,
        is_cut_short=record.state in FINAL_STATES - {RunState.COMPLETED},
        is_balanced=is_balanced,
        strained=_sum_strained(basis),
        seconds=sum(end_s - begin_s for begin_s, end_s in seconds),
        planned_rps=None if schedule is None else _average(schedule, seconds),
    )


def _measure_inner(
    threshold: Threshold, basis: ThresholdBasis, clock_s: float, *, is_balanced: bool
) -> Measurement:
    """Measure the inner requests of a name, whose total number is unknown.

    They are not marked when measured under strain: each strained iteration counts with the mean number of
    inner requests.
    """
    record = basis.record
    phases = _list_phases(threshold, record.spec)
    inner = basis.accounts.inner
    meant = sorted(name for name in inner.names if _covers_name(threshold, name, record.spec))
    parts = [_pick(inner, threshold, name) for name in meant]
    made, iterations = sum(part.accounted for part in parts), max(1, basis.accounts.accounted)
    return Measurement(
        parts=parts,
        rest=OPEN_END,
        is_rest_exact=False,
        is_over=record.state == RunState.COMPLETED,
        is_cut_short=record.state in FINAL_STATES - {RunState.COMPLETED},
        is_balanced=is_balanced,
        strained=-(-_sum_strained(basis) * made // iterations),
        seconds=sum(end_s - begin_s for begin_s, end_s in _iter_seconds(phases, clock_s)),
    )


def _covers_name(threshold: Threshold, name: str, spec: Spec) -> bool:
    """Whether a threshold covers inner requests of a name; for a locustfile, also without the method."""
    if spec.engine is Engine.LOCUST and threshold.target == name.partition(" ")[2]:
        return True
    return threshold.target == name


def _list_phases(threshold: Threshold, spec: Spec) -> list[PhaseTime]:
    return [time for time in list_phase_times(spec) if _covers_phase(threshold, time)]


def _pick(accounts: PartAccounts, threshold: Threshold, name: str | None) -> Account:
    """The account of the requests of a name, or of all, in the time that a threshold covers."""
    if threshold.phase is None:
        return accounts.fetch_measured(name)
    if name is None:
        return accounts.fetch_phase(threshold.phase)
    return accounts.get((threshold.phase, name), NO_REQUESTS)


def _sum_strained(basis: ThresholdBasis) -> int:
    return sum(requests for flag, requests, _ in basis.flags if flag in _STRAINS)


def _find_rest(basis: ThresholdBasis, threshold: Threshold, phases: Collection[str], account: Account) -> int:
    """An upper bound on the requests of a threshold that its account does not have yet."""
    record, parts, target = basis.record, basis.accounts.parts, threshold.target
    schedule = build_phase_plan(record.spec).schedule
    if schedule is None:
        due = _count_due(record.spec, target, 0, _find_requests(record))
        whole = parts.list_fewest() if target is None else parts.list_named(target)
        return due - sum(each.accounted for each in whole)
    spans = _join_spans([(phase.first, phase.stop) for phase in schedule.phases if phase.name in phases])
    due = sum(_count_due(record.spec, target, first, stop) for first, stop in spans)
    return due - account.accounted


def _join_spans(spans: Iterable[tuple[_Place, _Place]]) -> list[tuple[_Place, _Place]]:
    """Spans in rising order; adjacent ones are joined."""
    joined: list[tuple[_Place, _Place]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    return joined


def _count_due(spec: Spec, target: str | None, first: int, stop: int) -> int:
    """How many of some indices belong to a target; all of them without a target."""
    if target is None:
        return stop - first
    place = [each.name for each in spec.targets].index(target)
    return count_target_requests(spec, place, stop) - count_target_requests(spec, place, first)


def _find_requests(record: RunRecord) -> int:
    """The most requests of a run; unknown for a cancelled run without a count."""
    is_cut = record.spec.is_timed and record.state == RunState.CANCELLED
    return OPEN_END if is_cut else record.requests


def _ends_by_count(spec: Spec) -> bool:
    """Whether a closed run has a single phase that ends with its last request."""
    return len(list_phase_times(spec)) == 1 and not spec.is_timed


def _covers_phase(threshold: Threshold, time: PhaseTime) -> bool:
    """Whether a threshold covers a phase; without a name, all but the warm-up, which is not measured."""
    return time.name == threshold.phase if threshold.phase is not None else time.name != WARM_UP


def _iter_seconds(phases: Iterable[PhaseTime], clock_s: float) -> Iterator[tuple[float, float]]:
    """The start and current end of each phase, in seconds of the run's activity."""
    for phase in phases:
        end_s = clock_s if phase.end_s is None else min(clock_s, float(phase.end_s))
        if end_s > phase.begin_s:
            yield float(phase.begin_s), end_s


def _average(schedule: Schedule, seconds: Iterable[tuple[float, float]]) -> float:
    """The mean planned rate of some parts of a run's time; 0 if there are none."""
    rates = [(float(schedule.mean_rate(*part) or 0), part[1] - part[0]) for part in _join_spans(seconds)]
    passed_s = sum(length_s for _, length_s in rates)
    return sum(rate * length_s for rate, length_s in rates) / passed_s if passed_s else 0.0
