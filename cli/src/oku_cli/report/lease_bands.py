"""Reduces the leases of a run to what a chart can show: the ranges of each lease or, of very many, bands.

Bands are cut along rows of the request space and time steps. The steps grow with the run, as those of its
samples do, so that there are never more than a few thousand bands.
"""

from collections import Counter
from dataclasses import dataclass

from oku_core.accounting.lease_state import LeaseSpan, LeaseState

MOST_BANDS = 5000
_ROWS = 250
"""More rows could not be told apart in a chart."""


@dataclass(slots=True)
class Band:
    """Neighbouring ranges of leases of one state: from the first to the last in time and request space.

    `closed_at` is None while they are active.
    """

    state: LeaseState
    start: int
    stop: int
    cut_at: float
    closed_at: float | None


class LeaseBands:
    """The leases of a run, as bands.

    Args:
        extent: the index behind the last one of its request space that is shown.
    """

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._step_s = 0.5
        self.bands: list[Band] = []
        self.are_merged = False
        """Whether a band may stand for several leases."""
        self.counts: Counter[LeaseState] = Counter()
        """The number of leases in each state."""

    def __len__(self) -> int:
        """Return the number of leases, not of bands."""
        return self.counts.total()

    def add(self, lease: LeaseSpan) -> None:
        """Add a lease, and merge bands if there are too many."""
        self.counts[lease.state] += 1
        for start, stop in lease.ranges or [(lease.start, lease.stop)]:
            self.bands.append(Band(lease.state, start, stop, lease.cut_at, lease.closed_at))
        if len(self.bands) > MOST_BANDS:
            self._merge()
            while len(self.bands) > MOST_BANDS // 2:
                self._step_s *= 2
                self._merge()

    def _merge(self) -> None:
        merged: dict[tuple[LeaseState, int, int], Band] = {}
        for band in self.bands:
            place = band.state, int(band.cut_at // self._step_s), band.start * _ROWS // self._extent
            other = merged.get(place)
            merged[place] = band if other is None else _join(other, band)
        self.are_merged = self.are_merged or len(merged) < len(self.bands)
        self.bands = list(merged.values())


def _join(band: Band, other: Band) -> Band:
    band.start, band.stop = min(band.start, other.start), max(band.stop, other.stop)
    band.cut_at = min(band.cut_at, other.cut_at)
    if band.closed_at is not None and other.closed_at is not None:
        band.closed_at = max(band.closed_at, other.closed_at)
    return band
