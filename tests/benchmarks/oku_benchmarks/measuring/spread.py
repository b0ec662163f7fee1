"""What several rounds say together: median, smallest and largest."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple


class Spread(NamedTuple):
    """Of one figure over all rounds."""

    median: float
    low: float
    high: float

    def format(self, pattern: str = ",.0f") -> str:
        """As it stands in a table: `1,200 (1,100-1,300)`."""
        if self.low == self.high:
            return f"{self.median:{pattern}}"
        return f"{self.median:{pattern}} ({self.low:{pattern}}–{self.high:{pattern}})"  # noqa: RUF001  # typography


def build_spread(figures: Iterable[float]) -> Spread:
    """Of at least one figure."""
    values = list(figures)
    return Spread(median(values), min(values), max(values))


def build_ratios(figures: Iterable[float], others: Iterable[float]) -> Spread:
    """The ratios round by round: what changes from round to round meets both alike."""
    return build_spread(one / other for one, other in zip(figures, others, strict=True))
