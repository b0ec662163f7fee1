"""The account of a run: what its reports sum to."""

from copy import copy
from dataclasses import dataclass, field

from oku_core.accounting.histogram import Histogram
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import build_no_counts, count_answered
from oku_core.messaging.lease import Report


@dataclass
class Account:
    """What the reports of a run sum to."""

    outcomes: list[int] = field(default_factory=build_no_counts)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    def add(self, report: Report) -> None:
        """Fold a report in."""
        for index, count in enumerate(report.outcomes):
            self.outcomes[index] += count
        for status, count in report.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.bytes_received += report.bytes_received
        self.histogram.add(report.latency)

    def copy(self) -> "Account":
        """A copy that later reports do not change."""
        histogram = copy(self.histogram)
        histogram.counts = list(histogram.counts)
        return Account(list(self.outcomes), dict(self.statuses), self.bytes_received, histogram)

    def check(self, lengths: Lengths) -> None:
        """Check the first law: outcomes sum to accounted requests, latencies and statuses to answered ones.

        Raises:
            ConservationError: they do not.
        """
        if self.accounted != lengths.accounted:
            raise ConservationError(
                f"the outcomes sum to {self.accounted}, but {lengths.accounted} are accounted"
            )
        answered = count_answered(self.outcomes)
        latencies, statuses = self.histogram.total, sum(self.statuses.values())
        if not latencies == answered == statuses:
            raise ConservationError(
                f"{answered} were answered, but {latencies} latencies and {statuses} statuses are there"
            )
