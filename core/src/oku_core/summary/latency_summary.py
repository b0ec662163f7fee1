"""How long requests took, and how that time is split, as people, scripts and dashboards read it."""

from functools import lru_cache

import msgspec

from oku_core.accounting.account import Account
from oku_core.accounting.histogram import Histogram, HistogramSnapshot, bucket_bounds_us, merge, subtract
from oku_core.accounting.measured_time import Time

SUMMARY_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""The quantiles of each distribution of a summary, by name."""


_NONE = HistogramSnapshot()


class LatencySummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Milliseconds; None when nothing was answered. Exact: min, mean, max. Quantiles: within 0.1 %."""

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class StepSummary(LatencySummary, frozen=True, kw_only=True, gc=False):
    """How long one step of requests took, in milliseconds; None if no request has it.

    `requests` is how many have it, and the mean is exact. All else is within 0.1 %.
    """

    requests: int = 0


class QuantileIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """Low and high end of a 95 % interval around each quantile, in ms; None if there are too few requests."""

    p50: tuple[float, float] | None = None
    p90: tuple[float, float] | None = None
    p95: tuple[float, float] | None = None
    p99: tuple[float, float] | None = None
    p99_9: tuple[float, float] | None = None


class TimingSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


def build_latency_summary(histogram: Histogram) -> LatencySummary:
    """The figures of a merged histogram, in ms."""
    return LatencySummary(**_measure(histogram, histogram.total))


def build_timing_summary(account: Account) -> TimingSummary:
    """How the time of the requests of an account is split."""
    latency = account.histogram(Time.LATENCY)
    if Time.SPLIT_LATENCY in account.times:
        times = (Time.LATENCY, Time.SPLIT_LATENCY, Time.SPLIT_FIRST_BYTE)
        first_byte = _build_step(
            build_first_byte(*(account.histogram(time).build_latency() for time in times))
        )
        split_transfer = account.histogram(Time.TRANSFER).build_latency()
        transfer = _build_step(build_transfer(latency.total, split_transfer))
    else:  # most answers arrive in one piece
        first_byte, transfer = _build_step(latency), _build_no_transfer(latency.total)
    return TimingSummary(
        connect=_build_step(account.histogram(Time.CONNECT)),
        tls=_build_step(account.histogram(Time.TLS)),
        first_byte=first_byte,
        transfer=transfer,
    )


def build_first_byte(
    latency: HistogramSnapshot, split_latency: HistogramSnapshot, split_first_byte: HistogramSnapshot
) -> HistogramSnapshot:
    """From sending to the first byte, of all answers; count and sum are exact.

    Minimum and maximum are exact if split answers have them, and else as exact as a bucket.

    Args:
        latency: of all answers.
        split_latency: of the split answers among them.
        split_first_byte: from sending to the first byte, of the same ones.

    Raises:
        ValueError: the latencies of split answers are not among all.
    """
    if not split_latency.buckets:
        return latency
    rest = subtract(latency, split_latency)
    if rest.buckets:
        rest = msgspec.structs.replace(
            rest,
            min_us=max(rest.min_us, bucket_bounds_us(rest.buckets[0])[0]),
            max_us=min(rest.max_us, bucket_bounds_us(rest.buckets[-2])[1]),
        )
    return merge([rest, split_first_byte])


def build_transfer(answered: int, transfer: HistogramSnapshot) -> HistogramSnapshot:
    """From the first to the last byte, of all answers; it is exact.

    Args:
        answered: how many answers were complete.
        transfer: of those among them that were split; the others took no time for it.
    """
    whole = answered - transfer.total
    return merge([transfer, HistogramSnapshot(buckets=[0, whole])]) if whole else transfer


@lru_cache(1024)
def _build_no_transfer(answered: int) -> StepSummary:
    return _build_step(build_transfer(answered, _NONE))


def _build_step(histogram: Histogram | HistogramSnapshot) -> StepSummary:
    total = histogram.total
    return StepSummary(requests=total, **_measure(histogram, total))


def _measure(histogram: Histogram | HistogramSnapshot, total: int) -> dict[str, float]:
    if not total:
        return {}
    values_us = histogram.quantiles_us(SUMMARY_QUANTILES.values())
    return {
        "min": histogram.min_us / 1000,
        "mean": round(histogram.sum_us / total / 1000, 6),
        "max": histogram.max_us / 1000,
        **{name: value_us / 1000 for name, value_us in zip(SUMMARY_QUANTILES, values_us, strict=True)},
    }
