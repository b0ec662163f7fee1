"""Pure builders of the lines for Loki; docs/metrics.md describes their fields."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us
from oku_core.accounting.interval import Slice
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts, count_sent
from oku_core.messaging.checkpoint import Part
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import Progress, RunProgress
from oku_core.results.coverage import AGAIN, Coverage
from oku_core.results.latency_summary import TimingSummary
from oku_core.results.lease_span import LeaseFigures, LeaseSpan
from oku_core.results.request_summary import AnswerSummary, FailureSummary, PhaseSummary, TargetSummary
from oku_core.results.sample import (
    LIVE_QUANTILES,
    QUANTILES,
    Sample,
    build_latencies_ms,
)
from oku_core.results.summary import Summary
from oku_core.spec.spec import OPEN_END
from oku_core.spec.values.threshold import FigureUnit
from oku_core.thresholds.threshold_summary import ThresholdSummary

Fields = Mapping[str, Any]


class TimeProgress(NamedTuple):
    """How far a run is that has a rate or ends after a time.

    Attributes:
        clock_s: how many seconds of its time have passed; None for other runs, as the next one is.
        length_s: how many seconds it lasts.
        unused: how many of its requests are left unused, of a run that also ends after a number.
    """

    clock_s: float | None = None
    length_s: float | None = None
    unused: int | None = None

    def build_fields(self) -> Fields:
        """The fields of a line."""
        return {"clock_s": _round(self.clock_s, 3), "length_s": self.length_s, "unused": self.unused}


NO_TIME = TimeProgress()
"""That of a run that only its last request ends."""


class RunHead(NamedTuple):
    """What a run is about, in words.

    Attributes:
        target: what is asked.
        load: how requests are sent.
    """

    target: str
    load: str


class LineKind(StrEnum):
    """What a line is about; docs/metrics.md has the fields of each kind."""

    RANGE = "range"
    STATUS = "status"
    TICK = "tick"
    LATENCY = "latency"
    WORKER = "worker"
    COVERAGE = "coverage"
    EVENT = "event"
    SUMMARY = "summary"
    PHASE = "phase"
    FAILURE = "failure"
    TARGET = "target"
    THRESHOLD = "threshold"
    INNER = "inner"
    INNER_RANGE = "inner_range"


MOST_SUMMARY_WORKERS = 1000
_R10 = (10, 12.5, 16, 20, 25, 31.5, 40, 50, 63, 80)
"""Renard's series R10 (ISO 3): ten steps to a decade, each about 1.26 times the one before."""
_DECADES = range(-3, 6)
BOUNDS_MS = tuple(float(f"{step * 10.0**decade:.6g}") for decade in _DECADES for step in _R10)[:-2]
"""Upper bounds of the buckets of heatmaps, in ms: 0.01 to 5,000,000."""


def build_range_lines(lease: LeaseSpan, figures: LeaseFigures, parts: Iterable[Part]) -> Iterator[Fields]:
    """A line for each part of a closed lease; together they tell of what the lease has accounted for."""
    cpu_s = figures.cpu_s
    for part in parts:
        yield {
            "lease": lease.id,
            "worker": lease.worker,
            **_build_part_names(part),
            "start": lease.start,
            "stop": lease.stop,
            "requests": sum(part.outcomes),
            **build_outcome_counts(part.outcomes),
            **_build_cause_counts(part),
            "bytes_received": part.bytes_received,
            **build_latencies_ms(part.times),
            "started_at": round(figures.started_at, 3),
            "seconds": round(max(0.0, figures.ended_at - figures.started_at), 3),
            "cpu_s": round(cpu_s, 3),
            "peak_rss_mb": round(figures.peak_rss_mb, 1),
            "max_lag_s": round(figures.max_lag_s, 4),
            "busy_share": round(figures.busy_share, 3),
        }
        cpu_s = 0.0  # so that the lines of a lease sum to its processor time


def build_unsent_line(part: Part) -> Fields:
    """The line of requests that the coordinator has accounted for by itself; no worker had a part in them."""
    return {
        **_build_part_names(part),
        "requests": sum(part.outcomes),
        **build_outcome_counts(part.outcomes),
        **_build_cause_counts(part),
    }


def build_status_lines(worker: str, parts: Iterable[Part]) -> Iterator[Fields]:
    """A line for each status code in each part of a closed lease."""
    for part in parts:
        for status, requests in sorted(part.statuses.items()):
            yield {"worker": worker, **_build_part_names(part), "status": status, "requests": requests}


def _build_part_names(part: Part) -> Fields:
    """The names that a part has; those that are empty are left out. `name` is a label, that of the run."""
    return {field: text for field, text in (("phase", part.phase), ("target", part.name)) if text}


def _build_cause_counts(part: Part) -> Fields:
    """Why requests of a part were not sent; the names do not clash with the label `late`."""
    return _prefix("not_sent_", build_cause_counts(part.not_sent))


def _prefix(prefix: str, fields: Fields) -> Fields:
    return {f"{prefix}{name}": value for name, value in fields.items()}


def build_sample_fields(sample: Sample) -> Fields:
    """The fields of a sample under their own names, flat, without its time and its histogram."""
    return {
        "seconds": round(sample.seconds, 3),
        "requests_total": sample.requests_total,
        "accounted": sample.accounted,
        "leased": sample.leased,
        "pending": sample.pending,
        "done": sample.done,
        "resent_at_most": sample.resent_at_most,
        "active_s": round(sample.active_s, 3),
        "requests_ended": sample.requests_ended,
        "requests_sent": sample.requests_sent,
        "requests_planned": sample.requests_planned,
        "phase": sample.phase or None,
        **build_outcome_counts(sample.outcomes),
        "bytes_received": sample.bytes_received,
        "rate_rps": round(sample.rate_rps, 1),
        "in_flight": _round(sample.in_flight, 1),
        "mean_ms": sample.mean_ms,
        **{name: getattr(sample, name) for name in LIVE_QUANTILES},
        "workers": sample.workers,
        "lag_s": _round(sample.lag_s, 4),
        "clock_bound_s": _round(sample.clock_bound_s, 6),
    }


def _round(figure: float | None, digits: int) -> float | None:
    return None if figure is None else round(figure, digits)


def build_tick_line(state: str, head: RunHead, sample: Sample, progress: TimeProgress = NO_TIME) -> Fields:
    """The line of one second of a run that is in this state.

    What a run without an end in number has in all is in no line, and so is what of that is pending.
    """
    fields = {
        "state": state or None,
        "target": head.target,
        "load": head.load,
        **build_sample_fields(sample),
        **progress.build_fields(),
    }
    if sample.requests_total >= OPEN_END:
        fields["requests_total"] = fields["pending"] = None
    return fields


def build_late_tick_line(
    outcomes: Sequence[int],
    sent: int,
    seconds: int,
    active_s: float | None,
    *,
    requests_planned: int | None = None,
    phase: str = "",
) -> Fields:
    """The line of counts that came after the line of their second, or of a second without a sample.

    Args:
        outcomes: of the requests that ended in the second, in the order of `OUTCOMES`.
        sent: how many requests were sent in the second.
        seconds: 0 if another line has the length of the second, or else this length.
        active_s: how long the run had been active at the end of this length.
        requests_planned: as many requests as the rate of the run makes in this length; None without a rate.
        phase: the phase in which the second begins; empty if the run has only one.
    """
    return {
        "seconds": seconds,
        "active_s": None if active_s is None else round(active_s, 3),
        "requests_ended": count_sent(outcomes),
        "requests_sent": sent,
        "requests_planned": requests_planned,
        "phase": phase or None,
        **build_outcome_counts(outcomes),
    }


def build_latency_lines(latency: HistogramSnapshot) -> Iterator[Fields]:
    """A line for each non-empty bucket of a heatmap, with its own count."""
    place, held = 0, 0
    pairs = iter(latency.buckets)
    for index, count in zip(pairs, pairs, strict=True):
        low_ms = bucket_bounds_us(index)[0] / 1000
        while low_ms > BOUNDS_MS[place]:
            if held:
                yield {"le": format_bound(BOUNDS_MS[place]), "requests": held}
            place, held = place + 1, 0
        held += count
    if held:
        yield {"le": format_bound(BOUNDS_MS[place]), "requests": held}


def build_summary_line(summary: Summary) -> Fields:
    """The line of a run at rest, without what has lines of its own, or very many workers."""
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
    """Six digits; times keep their microseconds, so that a quantile is that of the summary."""
    if value is None or unit is FigureUnit.MS:
        return _round(value, 6)
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
        **_prefix("not_sent_", msgspec.to_builtins(part.not_sent)),
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


def format_bound(bound_ms: float) -> str:
    """A bound as text, as short as possible."""
    return f"{bound_ms:.0f}" if math.floor(bound_ms) == bound_ms else f"{bound_ms:g}"


def build_worker_line(
    run: str, latest: Progress, seconds: float, requests_ended: int, cpu_share: float, lag_s: float
) -> Fields:
    """The line of what a worker did of a run.

    Args:
        run: the id of the run.
        latest: the worker's latest progress.
        seconds: the length of the time that the other arguments cover.
        requests_ended: how many requests of the run ended in that time.
        cpu_share: the mean share of a processor in that time.
        lag_s: the largest lateness of its event loop in that time, while it had work of the run.
    """
    done = latest.runs.get(run, RunProgress())
    quantiles = build_latencies_ms(done.times)
    return {
        "worker": latest.worker,
        "seconds": round(seconds, 3),
        "requests_ended": requests_ended,
        "rate_rps": round(requests_ended / seconds, 1),
        "in_flight": done.in_flight,
        "leases": sum(read_lease_run(lease) == run for lease in latest.leases),
        "p50_ms": quantiles["p50_ms"],
        **{name: quantiles[name] for name in (f"{time.figure_prefix}p99_ms" for time in LIVE_TIMES)},
        "cpu_share": round(cpu_share, 3),
        "rss_mb": round(latest.rss_mb, 1),
        "lag_s": round(lag_s, 4),
        "clock_bound_s": _round(latest.clock_bound_s, 6),
    }


def build_coverage_lines(
    slices: Iterable[Slice], again: Iterable[tuple[int, int]], extent: int
) -> Iterator[Fields]:
    """A line for each part of the request space.

    Args:
        slices: the slices of the space now.
        again: the ranges `[start, stop)` that were taken back; each counts, even where they overlap.
        extent: the index behind the last one of interest.
    """
    coverage = Coverage(extent)
    for piece in slices:
        coverage.add(piece.state, piece.start, piece.stop)
    for start, stop in again:
        coverage.add(AGAIN, start, stop)
    return coverage.build_lines()
