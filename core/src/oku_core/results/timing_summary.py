"""How the time of requests is split, in the form that people, scripts and dashboards read."""

from collections.abc import Mapping

import msgspec

from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.request_timing import build_first_byte, build_transfer

SUMMARY_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""The quantiles of each distribution of a summary, by name."""


class StepSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How long one step of requests took, in milliseconds; None if no request has it.

    `requests` is how many have it, and the mean is exact. All else is within 0.1 %.
    """

    requests: int = 0
    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class TimingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How the time of requests is split.

    `connect` is TCP and `tls` the handshake after it, of requests for which a connection was made, answered
    or not; those that went out on a kept connection have neither. Looking a name up is part of neither.
    `first_byte` is from sending to the first byte of the answer, and `transfer` from there to the last one,
    of all that were answered; the transfer of an answer that arrived in one piece is 0. As their latency
    does, the first byte of requests for which a connection was made includes connecting.
    """

    connect: StepSummary = StepSummary()
    tls: StepSummary = StepSummary()
    first_byte: StepSummary = StepSummary()
    transfer: StepSummary = StepSummary()

    def list_steps(self) -> list[tuple[str, StepSummary]]:
        """All steps with their names, in the order of time."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__]


def build_timing_summary(latency: Histogram, timings: Mapping[str, Histogram]) -> TimingSummary:
    """The figures of merged histograms, in ms.

    Args:
        latency: of all answers.
        timings: by all of the names in `oku_core.accounting.request_timing.TIMINGS`.
    """
    snapshots = {name: timing.build_latency() for name, timing in timings.items()}
    latencies = latency.build_latency()
    first_byte = build_first_byte(latencies, snapshots["split_latency"], snapshots["split_first_byte"])
    return TimingSummary(
        connect=_build_step(snapshots["connect"]),
        tls=_build_step(snapshots["tls"]),
        first_byte=_build_step(first_byte),
        transfer=_build_step(build_transfer(latency.total, snapshots["transfer"])),
    )


def _build_step(histogram: HistogramSnapshot) -> StepSummary:
    total = histogram.total
    if not total:
        return StepSummary()
    quantiles_us = histogram.quantiles_us(SUMMARY_QUANTILES.values())
    return StepSummary(
        requests=total,
        min=histogram.min_us / 1000,
        mean=round(histogram.sum_us / total / 1000, 6),
        max=histogram.max_us / 1000,
        **{name: value_us / 1000 for name, value_us in zip(SUMMARY_QUANTILES, quantiles_us, strict=True)},
    )
