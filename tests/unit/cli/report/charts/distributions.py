"""Makes distributions of a run."""

from collections.abc import Sequence

from tests.kit.histograms import make_latency

from oku_cli.report.charts.histogram_chart import ShownDistribution


def make(values_us: Sequence[int], name: str = "latency") -> ShownDistribution:
    """Make a distribution of these values."""
    return ShownDistribution(name, "answered requests", make_latency(values_us))
