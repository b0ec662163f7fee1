"""A distribution of the whole run, as charts and tables show it."""

from dataclasses import dataclass

from oku_core.accounting.histogram import HistogramSnapshot
from oku_core.summary.summary import Summary
from oku_core.tables.time_tables import TIMES


@dataclass(frozen=True)
class ShownDistribution:
    """A distribution of a run.

    Attributes:
        name: what is distributed: `latency`, `response time` or `lateness`.
        requests: which requests it is of: `answered requests`.
        histogram: the distribution; not empty.
    """

    name: str
    requests: str
    histogram: HistogramSnapshot

    @property
    def id(self) -> str:
        """Its name in ids and CSS classes."""
        return self.name.replace(" ", "-")


def list_distributions(summary: Summary) -> list[ShownDistribution]:
    """List the distributions of a run that are not empty, its latencies first."""
    return [
        ShownDistribution(time.label, time.counted, histogram)
        for time in TIMES
        if (histogram := time.decode(summary)).total
    ]
