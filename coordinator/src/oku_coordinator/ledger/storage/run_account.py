"""The account of a run: what its checkpoints sum to."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from oku_core.accounting.histogram import Histogram, HistogramSnapshot
from oku_core.accounting.interval import ConservationError, Lengths
from oku_core.accounting.outcome import build_no_counts, count_answered


@dataclass
class Account:
    """What the checkpoints of a run sum to."""

    outcomes: list[int] = field(default_factory=build_no_counts)
    statuses: dict[str, int] = field(default_factory=dict)
    bytes_received: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    @property
    def accounted(self) -> int:
        """How many requests have an outcome."""
        return sum(self.outcomes)

    def add(
        self,
        outcomes: Sequence[int],
        statuses: Mapping[str, int],
        bytes_received: int,
        latency: HistogramSnapshot,
    ) -> None:
        """Fold in what has been gained."""
        for index, count in enumerate(outcomes):
            self.outcomes[index] += count
        for status, count in statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + count
        self.bytes_received += bytes_received
        self.histogram.add(latency)

    def copy(self) -> "Account":
        """A copy that later checkpoints do not change."""
        histogram = copy(self.histogram)
        histogram.counts = list(histogram.counts)
        return Account(list(self.outcomes), dict(self.statuses), self.bytes_received, histogram)

    def check(self, lengths: Lengths, series: Sequence[int]) -> None:
        """Check the first law: outcomes sum to accounted requests, latencies and statuses to answered ones.

        Args:
            lengths: how much of the run is in each state.
            series: the outcomes of all its seconds together, which are those of the run.

        Raises:
            ConservationError: they do not.
        """
        if self.accounted != lengths.accounted:
            raise ConservationError(
                f"the outcomes sum to {self.accounted}, but {lengths.accounted} are accounted"
            )
        if self.outcomes != list(series):
            raise ConservationError(
                f"the outcomes are {self.outcomes}, but the seconds sum to {list(series)}"
            )
        answered = count_answered(self.outcomes)
        latencies, statuses = self.histogram.total, sum(self.statuses.values())
        if not latencies == answered == statuses:
            raise ConservationError(
                f"{answered} were answered, but {latencies} latencies and {statuses} statuses are there"
            )
