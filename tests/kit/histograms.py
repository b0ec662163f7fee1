"""Histograms of the times that a test names."""

from collections.abc import Iterable

from oku_core.accounting.histogram import Histogram, HistogramSnapshot


def make_histogram(values_us: Iterable[int]) -> Histogram:
    """Record every value, one by one."""
    histogram = Histogram()
    for value_us in values_us:
        histogram.record(value_us)
    return histogram


def make_latency(values_us: Iterable[int]) -> HistogramSnapshot:
    """The same as a value."""
    return make_histogram(values_us).build_latency()
