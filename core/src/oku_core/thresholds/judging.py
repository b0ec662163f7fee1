"""Judges a threshold by its measured requests: a pure rule.

A verdict is given as soon as it is certain, and not at all where something else could turn it: a run without
data, an account that does not balance, a worker's own trouble, or requests that were not sent or are lost.
"""

from dataclasses import replace
from fractions import Fraction

import msgspec

from oku_core.accounting.outcome import Outcome
from oku_core.spec.values.threshold import NEVER_ENDED, FigureKind, FigureUnit, Threshold
from oku_core.spec.values.threshold_reader import ComparisonOperator
from oku_core.thresholds.counting import Condition, HitCount, compare
from oku_core.thresholds.measurement import Measurement
from oku_core.thresholds.threshold_summary import ThresholdSummary, ThresholdVerdict

FEWEST_STRAINED = Fraction(1, 100)
"""The share of requests that must have been measured under strain for a rate to be in doubt."""
_US_PER_MS = 1000


def judge(threshold: Threshold, measured: Measurement, *, is_lost: bool = False) -> ThresholdSummary:
    """Judge a threshold over the whole of a run or of its phase; one that was lost for certain stays so."""
    is_count = threshold.kind in (FigureKind.QUANTILE, FigureKind.OUTCOMES)
    summary = _judge_count(threshold, measured) if is_count else _judge_figure(threshold, measured)
    if not measured.is_balanced:
        detail = "the account does not balance"
        return _change(summary, ThresholdVerdict.UNDECIDED, detail)
    return _change(summary, ThresholdVerdict.FAILED, "") if is_lost else summary


def build_condition(threshold: Threshold) -> Condition:
    """The condition on a number of requests that a threshold on outcomes or on a quantile is.

    `p99 < 300ms` means that 99 % of all requests, or more, took less than 300 ms.
    """
    if threshold.kind is FigureKind.QUANTILE:
        return Condition(ComparisonOperator.AT_LEAST, threshold.quantile, is_share=True)
    return Condition(threshold.comparison, threshold.limit, is_share=threshold.unit is FigureUnit.SHARE)


def count_hits(threshold: Threshold, measured: Measurement) -> HitCount:
    """Count what such a threshold is about."""
    total, timeouts = measured.total, measured.count([Outcome.TIMEOUT])
    never_ended = measured.count(NEVER_ENDED)
    if threshold.kind is FigureKind.QUANTILE:
        hits = measured.count_within(threshold.time, threshold.comparison, threshold.limit)
        slow = measured.count_timed(threshold.time) - hits
        unknown, strained = never_ended, slow + timeouts
    else:
        hits = measured.count(threshold.outcomes)
        unknown = 0 if threshold.outcomes & NEVER_ENDED else never_ended
        is_among = (Outcome.TIMEOUT in threshold.outcomes) == threshold.comparison.is_upper
        strained = timeouts if is_among else 0
    return HitCount(
        hits=hits,
        total=total,
        unknown=unknown,
        strained=min(strained, measured.strained),
        rest=0 if measured.is_over else measured.rest,
    )


def _judge_count(threshold: Threshold, measured: Measurement) -> ThresholdSummary:
    condition, count = build_condition(threshold), count_hits(threshold, measured)
    verdict, detail = condition.judge(count), ""
    if verdict is ThresholdVerdict.UNDECIDED:
        detail = _explain(condition, count, measured)
    is_known = measured.is_over or measured.is_rest_exact
    return ThresholdSummary(
        expression=str(threshold),
        verdict=verdict,
        value=_find_value(threshold, measured, count),
        limit=float(threshold.limit),
        unit=threshold.unit,
        holds=condition.holds(count.hits, count.total) if count.total else None,
        against=condition.count_against(count),
        allowed=max(0, condition.count_allowed(count.total + count.rest)) if is_known else None,
        detail=detail,
    )


def _find_value(threshold: Threshold, measured: Measurement, count: HitCount) -> float | None:
    if threshold.unit is FigureUnit.REQUESTS:
        return count.hits
    if threshold.unit is FigureUnit.SHARE:
        return count.hits / count.total if count.total else None
    value_us = measured.find_quantile_us(threshold.time, threshold.quantile)
    return None if value_us is None else value_us / _US_PER_MS


def _explain(condition: Condition, count: HitCount, measured: Measurement) -> str:
    """Why a run that is over has not decided a threshold; empty while it goes on."""
    if measured.is_cut_short:
        return "the run was cut short: the requests that were not made could turn it"
    if not measured.is_over:
        return ""
    if not count.total:
        return "there are no requests to judge"
    if condition.judge(replace(count, strained=0)) is not ThresholdVerdict.UNDECIDED:
        return _describe_strain(count.strained)
    detail = f"{count.unknown:,} requests that were not sent or are lost could turn it"
    return (
        f"{detail}, as could {count.strained:,} that were measured under strain" if count.strained else detail
    )


def _describe_strain(requests: int) -> str:
    what = "worker was short of processor time, or its event loop was late"
    return f"{requests:,} requests that could turn it were measured while a {what}"


def _judge_figure(threshold: Threshold, measured: Measurement) -> ThresholdSummary:
    """Judge a mean or a rate: known at the end only, since the rest can always turn it."""
    value, doubt = _measure(threshold, measured)
    holds = None if value is None else compare(value, threshold.comparison, threshold.limit)
    verdict, detail = ThresholdVerdict.UNDECIDED, ""
    if measured.is_cut_short:
        detail = "the run was cut short, and this is known at its end only"
    elif measured.is_over:
        if holds is None:
            detail = "there are no requests to judge"
        elif holds or not doubt:
            verdict = ThresholdVerdict.PASSED if holds else ThresholdVerdict.FAILED
        else:
            detail = _describe_strain(doubt)
    return ThresholdSummary(
        expression=str(threshold),
        verdict=verdict,
        value=None if value is None else float(value),
        limit=float(threshold.limit),
        unit=threshold.unit,
        holds=holds,
        detail=detail,
    )


def _measure(threshold: Threshold, measured: Measurement) -> tuple[Fraction | None, int]:
    """The value, and how many requests that were measured under strain could turn it if it does not hold."""
    if threshold.kind is FigureKind.MEAN:
        timed, sum_us = measured.count_timed(threshold.time), measured.sum_us(threshold.time)
        if not timed:
            return None, 0
        # None of them took longer than the longest.
        least_us = max(0, sum_us - measured.strained * measured.find_max_us(threshold.time))
        could_hold = compare(_mean_ms(least_us, timed), threshold.comparison, threshold.limit)
        return _mean_ms(sum_us, timed), measured.strained if could_hold else 0
    base = measured.seconds
    if threshold.unit is FigureUnit.OF_PLAN:
        base *= measured.planned_rps or 0.0
    if base <= 0 or not measured.total:
        return None, 0
    is_doubtful = measured.strained >= FEWEST_STRAINED * measured.total and not threshold.comparison.is_upper
    return Fraction(measured.sent) / Fraction(base), measured.strained if is_doubtful else 0


def _mean_ms(sum_us: int, timed: int) -> Fraction:
    return Fraction(sum_us, timed * _US_PER_MS)


def _change(summary: ThresholdSummary, verdict: ThresholdVerdict, detail: str) -> ThresholdSummary:
    return msgspec.structs.replace(summary, verdict=verdict, detail=detail)
