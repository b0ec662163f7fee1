"""Pure builders of the lines for Loki on leases, seconds and workers; docs/metrics.md describes their fields.

The name of a run is a label; the name of inner requests is the field `request`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from oku_core.accounting.histogram import HistogramSnapshot, bucket_bounds_us
from oku_core.accounting.lease_state import LeaseSpan
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import build_cause_counts, build_outcome_counts, count_sent
from oku_core.messaging.checkpoint import LeaseFigures, Part
from oku_core.messaging.lease import read_lease_run
from oku_core.messaging.progress import Progress, RunProgress
from oku_core.results.sample import (
    LIVE_QUANTILES,
    Sample,
    build_latencies_ms,
)
from oku_core.spec.spec import OPEN_END

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
"""The progress in time of a run that only its last request ends."""


class RunHead(NamedTuple):
    """A run in words: its target, and how requests are sent."""

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


_R10 = (10, 12.5, 16, 20, 25, 31.5, 40, 50, 63, 80)
"""Renard's series R10 (ISO 3): ten steps to a decade, each about 1.26 times the one before."""
_DECADES = range(-3, 6)
BOUNDS_MS = tuple(float(f"{step * 10.0**decade:.6g}") for decade in _DECADES for step in _R10)[:-2]
"""Upper bounds of the buckets of heatmaps, in ms: 0.01 to 5,000,000."""


def build_range_lines(lease: LeaseSpan, figures: LeaseFigures, parts: Iterable[Part]) -> Iterator[Fields]:
    """A line for each part of a closed lease; together they cover its accounted requests."""
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


def build_inner_range_lines(lease: LeaseSpan, inner: Iterable[Part]) -> Iterator[Fields]:
    """A line for each phase and name of the inner requests of a closed lease."""
    for part in inner:
        yield {
            "lease": lease.id,
            "worker": lease.worker,
            "phase": part.phase or None,
            "request": part.name,
            "requests": sum(part.outcomes),
            **build_outcome_counts(part.outcomes),
            "bytes_received": part.bytes_received,
            **build_latencies_ms(part.times, [Time.LATENCY]),
        }


def _build_part_names(part: Part) -> Fields:
    """The names that a part has; empty ones are left out. `name` is a label: the name of the run."""
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

    For a run without a number of requests, no line has the total or the pending count.
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
    for index, count in latency.filled():
        low_ms = bucket_bounds_us(index)[0] / 1000
        while low_ms > BOUNDS_MS[place]:
            if held:
                yield {"le": format_bound(BOUNDS_MS[place]), "requests": held}
            place, held = place + 1, 0
        held += count
    if held:
        yield {"le": format_bound(BOUNDS_MS[place]), "requests": held}


def format_bound(bound_ms: float) -> str:
    """A bound as text, as short as possible."""
    return f"{bound_ms:.0f}" if math.floor(bound_ms) == bound_ms else f"{bound_ms:g}"


def build_worker_line(
    run: str, latest: Progress, seconds: float, requests_ended: int, cpu_share: float, lag_s: float
) -> Fields:
    """The line of what a worker did of a run in some seconds.

    `cpu_share` is its mean share of a processor in them, and `lag_s` the largest lateness of its event loop
    while it had work of the run.
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
