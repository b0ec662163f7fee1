"""A second of load, as it is sent to followers of a run, kept in the ledger, exported and charted.

A live sample is made from progress, which may be lost. In a kept one, the outcomes are taken from the series
of the run (`oku_core.results.series`), which sums to the account; the rest stays as seen live. A long run has
fewer and longer samples (`merge_steps`), which merge everything that the shorter ones counted.
"""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from oku_core.accounting import histogram
from oku_core.accounting.counts import LiveCounts
from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.accounting.measured_time import LIVE_TIMES, Time
from oku_core.accounting.outcome import build_no_counts, count_sent, sum_counts

_NONE = HistogramSnapshot()

MOST_SAMPLES = 3600
"""How many samples of a run are kept: one for each second of an hour."""

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p99_9_ms": 0.999, "max_ms": 1.0}
"""The quantiles that are shown over time, by name."""
LIVE_QUANTILES = tuple(f"{time.figure_prefix}{name}" for time in LIVE_TIMES for name in QUANTILES)
"""The quantiles of all times that are followed second by second, by name."""


class Sample(LiveCounts, frozen=True, kw_only=True):
    """A second of load merged over all workers, or several such seconds merged.

    It counts the requests that ended in it. Its times are `LIVE_TIMES`; a kept sample knows them to 1 part in
    32 (`coarsen`).

    Attributes:
        at: the Unix time of its end, by the coordinator's clock: a whole second, unless the run came to rest.
        seconds: its length. After the coordinator stood still, it is longer than a second, as far as workers
            have reported on that time.
        requests_total: the size of the request space.
        accounted: the requests in the ledger at its end.
        leased: the requests in active leases at its end.
        pending: the requests in no lease at its end; with the two above they make up `requests_total`.
        done: the accounted requests and the requests of active leases that progress reports as ended, at its
            end.
        resent_at_most: how many requests may have been sent more than once, at its end.
        active_s: how long the run had been active at its end.
        outcomes_so_far: the outcomes of all requests that had ended by its end, accounted or not yet, in the
            order of `OUTCOMES`.
        workers: how many workers of the run lived at its end. This, `in_flight` and `lag_s` are None if no
            coordinator was there to see it.
        in_flight: the requests sent and not yet answered, over all workers; the mean if it merges several.
        requests_ended: the requests that ended in it; those that were not sent, or are lost, never do.
        rate_rps: the requests that ended, per second of it. A shorter sample counts as a whole second,
            because workers report whole seconds.
        requests_sent: the requests that were sent in it.
        requests_planned: as many requests as the rate of the run makes in it; None in runs without a rate.
        phase: the phase of the run in which it begins; empty if the run has only one.
        lag_s: the largest lateness of any worker's event loop in it.
        clock_bound_s: by how much the coordinator's clock may be wrong at most as any worker knows it; None
            in runs without a rate, or if no worker reported it.
        mean_ms: the mean latency of the requests answered in it; None if there are none.

    The quantiles of these latencies, of response times and of latenesses follow, each None if there are none.
    """

    at: float
    seconds: float
    requests_total: int
    accounted: int
    leased: int
    pending: int
    done: int
    resent_at_most: int
    active_s: float = 0.0
    outcomes_so_far: list[int] = msgspec.field(default_factory=build_no_counts)
    workers: int | None
    in_flight: float | None
    requests_ended: int = 0
    requests_sent: int = 0
    requests_planned: int | None = None
    phase: str = ""
    rate_rps: float = 0.0
    lag_s: float | None = 0.0
    clock_bound_s: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None
    max_ms: float | None = None
    response_time_p50_ms: float | None = None
    response_time_p90_ms: float | None = None
    response_time_p99_ms: float | None = None
    response_time_p99_9_ms: float | None = None
    response_time_max_ms: float | None = None
    lateness_p50_ms: float | None = None
    lateness_p90_ms: float | None = None
    lateness_p99_ms: float | None = None
    lateness_p99_9_ms: float | None = None
    lateness_max_ms: float | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Sample)


def build_sample(
    *, seconds: float, outcomes: list[int], times: dict[Time, HistogramSnapshot], **rest: Any
) -> Sample:
    """Build a sample with the fields that follow from its length, its outcomes and its distributions."""
    return Sample(
        seconds=seconds,
        outcomes=outcomes,
        times=times,
        **build_rates(seconds, outcomes),
        **build_latencies_ms(times),
        **rest,
    )


def encode_kept(sample: Sample) -> bytes:
    """Encode a sample in the form in which the ledger keeps it."""
    return zlib.compress(_encoder.encode(sample))


def decode_kept(body: bytes) -> Sample:
    """Decode what `encode_kept` wrote."""
    return _decoder.decode(zlib.decompress(body))


def choose_step_s(ends: Sequence[float], most: int) -> int:
    """The step of time, in seconds, along which to merge samples so that at most half of `most` are left.

    It is the smallest power of two, from 2 on, that does so. Samples that were merged along shorter steps fit
    into longer ones.
    """
    step_s = 2
    while len({find_step(end, step_s) for end in ends}) > most // 2:
        step_s *= 2
    return step_s


def find_step(end: float, step_s: int) -> int:
    """The number of the step of Unix time in which the last second is of a sample that ends by then.

    Samples end with their seconds, or a little later.
    """
    return (math.floor(end + 0.5) - 1) // step_s


def merge_steps(samples: Iterable[Sample], step_s: int) -> list[Sample]:
    """The same samples, in order of time, with those merged whose last second is in the same step."""
    groups = groupby(samples, lambda sample: find_step(sample.at, step_s))
    return [merge_samples(list(group)) for _, group in groups]


def merge_samples(samples: Sequence[Sample]) -> Sample:
    """Merge samples, in order of time, into one; its quantiles are computed from the merged latencies."""
    if len(samples) == 1:
        return samples[0]
    seconds = sum(sample.seconds for sample in samples)
    outcomes = sum_counts(sample.outcomes for sample in samples)
    times = _merge_times([sample.times for sample in samples])
    figures = build_latencies_ms(times)
    return msgspec.structs.replace(
        samples[-1],
        seconds=seconds,
        workers=next((sample.workers for sample in reversed(samples) if sample.workers is not None), None),
        in_flight=_average_in_flight(samples),
        requests_sent=sum(sample.requests_sent for sample in samples),
        requests_planned=_sum_known(sample.requests_planned for sample in samples),
        phase=samples[0].phase,
        outcomes=outcomes,
        bytes_received=sum(sample.bytes_received for sample in samples),
        lag_s=_find_largest(sample.lag_s for sample in samples),
        clock_bound_s=_find_largest(sample.clock_bound_s for sample in samples),
        **build_rates(seconds, outcomes),
        times=times,
        **figures | _bound_quantiles(figures, samples),
    )


def _bound_quantiles(merged: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, float]:
    """The quantiles, none of them above the largest value: that is exact, while merged buckets are coarse."""
    bounded: dict[str, float] = {}
    for prefix in (time.figure_prefix for time in LIVE_TIMES):
        largest = _find_largest(getattr(sample, f"{prefix}max_ms") for sample in samples)
        if largest is not None:
            quantiles = {
                name: merged[name] for each in QUANTILES if merged[name := prefix + each] is not None
            }
            bounded |= {name: min(value, largest) for name, value in quantiles.items()}
            bounded[f"{prefix}max_ms"] = largest
    return bounded


def _find_largest(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def build_rates(seconds: float, outcomes: Sequence[int]) -> dict[str, Any]:
    """The number of requests that ended, in all and per second, under the names of a sample."""
    ended = count_sent(outcomes)
    return {"requests_ended": ended, "rate_rps": ended / max(1.0, seconds)}


def build_latencies_ms(
    times: Mapping[Time, HistogramSnapshot], wanted: Iterable[Time] = LIVE_TIMES
) -> dict[str, Any]:
    """The mean latency and the quantiles of times under the names of a sample; None where there are none."""
    mean_ms = measure_mean_ms(times.get(Time.LATENCY, _NONE))
    quantiles = {
        f"{time.figure_prefix}{name}": value
        for time in wanted
        for name, value in build_quantiles_ms(times.get(time, _NONE)).items()
    }
    return {"mean_ms": mean_ms, **quantiles}


def measure_mean_ms(latency: HistogramSnapshot) -> float | None:
    """The mean of latencies in ms; None if there are none."""
    return round(latency.sum_us / latency.total / 1000, 6) if latency.buckets else None


def build_quantiles_ms(histogram: HistogramSnapshot) -> dict[str, float | None]:
    """The quantiles of a distribution by name; all are None if it is empty."""
    if not histogram.buckets:
        return dict.fromkeys(QUANTILES)
    values = histogram.quantiles_us(QUANTILES.values())
    return {name: value / 1000 for name, value in zip(QUANTILES, values, strict=True)}


def _merge_times(
    distributions: Sequence[Mapping[Time, HistogramSnapshot]],
) -> dict[Time, HistogramSnapshot]:
    present = {time for times in distributions for time in times}
    return {
        time: histogram.merge(times[time] for times in distributions if time in times)
        for time in LIVE_TIMES
        if time in present
    }


def _average_in_flight(samples: Iterable[Sample]) -> float | None:
    """The mean over the time in which it was seen."""
    seen = [(sample.in_flight, sample.seconds) for sample in samples if sample.in_flight is not None]
    seen_s = sum(seconds for _, seconds in seen)
    return sum(in_flight * seconds for in_flight, seconds in seen) / seen_s if seen_s else None
