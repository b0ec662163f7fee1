"""Pure builders of the lines for Loki on a run at rest; docs/metrics.md describes their fields."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import NOT_SENT_CAUSES
from oku_core.results.lines import Fields
from oku_core.results.sample import QUANTILES
from oku_core.spec.values.threshold import FigureUnit
from oku_core.summary.latency_summary import TimingSummary
from oku_core.summary.request_summary import (
    AnswerSummary,
    FailureSummary,
    InnerSummary,
    PhaseSummary,
    TargetSummary,
)
from oku_core.summary.summary import Summary
from oku_core.thresholds.threshold_summary import ThresholdSummary

MOST_SUMMARY_WORKERS = 1000


def build_summary_line(summary: Summary) -> Fields:
    """Build the line of a run at rest, without parts that have lines of their own, or very many workers."""
    phases = [msgspec.structs.replace(phase, targets=[]) for phase in summary.phases]
    short = msgspec.structs.replace(summary, phases=phases, targets=[], inner_requests=[])
    fields: dict[str, Any] = msgspec.to_builtins(short)
    for part in (fields, *fields["phases"]):
        del part["targets"]
    del fields["inner_requests"]
    for failure in fields["failures"]:
        del failure["traceback"]
    if len(summary.workers) > MOST_SUMMARY_WORKERS:
        del fields["workers"]
    return fields


def build_phase_lines(phases: Iterable[PhaseSummary]) -> Iterator[Fields]:
    """A line for each phase of a run at rest, with its account and its distributions."""
    for phase in phases:
        yield {
            "phase": phase.name,
            "begin_s": phase.begin_s,
            "end_s": phase.end_s,
            "due": phase.due,
            "requests": phase.requests,
            "completed": phase.completed,
            "planned_rps": phase.planned_rps,
            "sent_rps": phase.sent_rps,
            "completed_rps": phase.completed_rps,
            **_build_figures(phase),
        }


def build_failure_lines(summary: Summary) -> Iterator[Fields]:
    """A line for each reason for which requests of a run at rest failed; inner requests are named."""
    for failure in summary.failures:
        yield _build_failure(failure)
    for inner in summary.inner_requests:
        for failure in inner.failures:
            yield {"request": inner.name, **_build_failure(failure)}


def _build_failure(failure: FailureSummary) -> Fields:
    return {
        **({"target": failure.target} if failure.target else {}),
        "outcome": failure.outcome,
        "reason": failure.reason,
        "requests": failure.requests,
        "first_index": failure.first_index,
        "last_index": failure.last_index,
        "sample": failure.sample or None,
        "traceback": failure.traceback or None,
    }


def build_threshold_lines(thresholds: Iterable[ThresholdSummary]) -> Iterator[Fields]:
    """A line for each threshold of a run at rest."""
    for threshold in thresholds:
        fields: Fields = msgspec.to_builtins(threshold)
        values = {"value": threshold.value, "lost_value": threshold.lost_value}
        shortened = {key: _shorten_value(value, threshold.unit) for key, value in values.items()}
        yield {**fields, **shortened, "detail": threshold.detail or None}


def _shorten_value(value: float | None, unit: FigureUnit) -> float | None:
    """Six digits; times keep their microseconds, so that a quantile equals the summary's."""
    if value is None or unit is FigureUnit.MS:
        return None if value is None else round(value, 6)
    return float(f"{value:.6g}")


def build_target_lines(targets: Iterable[TargetSummary]) -> Iterator[Fields]:
    """A line for each named target of a run at rest, with its account and its distributions."""
    for target in targets:
        yield {
            "target": target.name,
            "weight": target.weight,
            "requests": target.requests,
            "rate_rps": target.rate_rps,
            **_build_figures(target),
        }


def _build_figures(part: PhaseSummary | TargetSummary) -> Fields:
    """What the lines of phases and of targets have in common."""
    return {
        **msgspec.to_builtins(part.outcomes),
        **{f"not_sent_{cause}": getattr(part.not_sent, cause) for cause in NOT_SENT_CAUSES},
        "bytes_received": part.bytes_received,
        **build_summary_quantiles(part, LIVE_TIMES),
        **_build_steps(part.timing_ms),
    }


def _build_steps(timing: TimingSummary) -> Fields:
    """How the time is split: of each step how many have it, their median and their 99th percentile."""
    return {
        f"{name}_{figure}": value
        for name, step in timing.list_steps()
        for figure, value in (("requests", step.requests), ("p50_ms", step.p50), ("p99_ms", step.p99))
    }


def build_summary_quantiles(part: AnswerSummary, times: Iterable[Time]) -> Fields:
    """The figures of times that other lines have, under the same names."""
    return {
        f"{time.figure_prefix}{name}": getattr(part.find_latency(time), name.removesuffix("_ms"))
        for time in times
        for name in ("mean_ms", *QUANTILES)
    }


def build_inner_lines(inner: Iterable[InnerSummary]) -> Iterator[Fields]:
    """A line for each name of the inner requests of a run at rest."""
    for requests in inner:
        yield {
            "request": requests.name,
            "requests": requests.requests,
            "rate_rps": requests.rate_rps,
            **msgspec.to_builtins(requests.outcomes),
            "bytes_received": requests.bytes_received,
            **build_summary_quantiles(requests, [Time.LATENCY]),
        }
