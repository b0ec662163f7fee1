"""Makes distributions of a run."""

from collections.abc import Sequence

from tests.unit.cli.report.conftest import build_latency

from oku_cli.report.charts.histogram_chart import ShownDistribution


def make(values_us: Sequence[int], name: str = "latency") -> ShownDistribution:
    """Make a distribution of these values."""
    return ShownDistribution(name, "answered requests", build_latency(values_us))
