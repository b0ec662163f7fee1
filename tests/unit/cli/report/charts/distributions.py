"""Makes distributions of a run."""

from collections.abc import Sequence

from tests.unit.cli.report.conftest import build_latency

from oku_cli.report.charts.distribution import Distribution


def make(values_us: Sequence[int], name: str = "latency") -> Distribution:
    """Make a distribution of these values."""
    return Distribution(name, "answered requests", build_latency(values_us))
