"""A distribution of the whole run, as charts and tables show it."""

from dataclasses import dataclass

from oku_core.accounting.histogram import HistogramSnapshot


@dataclass(frozen=True)
class Distribution:
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
