"""Seconds of a run whose latencies are drawn, for tests of what is made of many seconds."""

import math
from collections.abc import Sequence
from random import Random

from tests.kit.histograms import make_histogram
from tests.kit.outcomes import make_counts

from oku_core.accounting.histogram import Histogram, coarsen
from oku_core.accounting.measured_time import Time
from oku_core.results.sample import Sample, build_sample

START = 1_769_965_512


def draw_seconds(
    count: int,
    *,
    seed: int,
    requests: int = 100,
    median_us: float = 20_000,
    wave: float = 0.05,
    phase: str = "",
) -> tuple[list[Sample], Histogram]:
    """Draw seconds with lognormal latencies, whose median wanders, and what they sum to.

    Args:
        count: how many seconds.
        seed: of the random numbers.
        requests: in each second.
        median_us: of all latencies.
        wave: how far the median of a second is off, as the standard deviation of its logarithm.
        phase: the phase of all seconds.
    """
    random, whole, samples, off = Random(seed), Histogram(), [], 0.0
    for second in range(count):
        off = 0.5 * off + random.gauss(0, wave * math.sqrt(0.75))
        values = [round(median_us * math.exp(off + random.gauss(0, 0.4))) for _ in range(requests)]
        samples.append(make_second(START + second + 1, values, phase=phase))
        for value_us in values:
            whole.record(value_us)
    return samples, whole


def make_second(end: float, values_us: Sequence[int], *, seconds: float = 1.0, phase: str = "") -> Sample:
    """Make the kept sample that ends at a Unix time, with these latencies."""
    histogram = make_histogram(values_us)
    return build_sample(
        at=float(end),
        seconds=seconds,
        outcomes=make_counts(len(values_us)),
        times={Time.LATENCY: coarsen(histogram.build_latency())},
        requests_total=10**6,
        accounted=0,
        leased=0,
        pending=0,
        done=0,
        resent_at_most=0,
        workers=1,
        in_flight=1.0,
        phase=phase,
    )
