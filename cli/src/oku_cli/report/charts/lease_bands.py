"""The leases of a run for a picture of them: each as it was, or, of very many, bands of several.

Bands are cut along rows of the request space and steps of time. Steps grow with the run, as those of its
samples do, so that there are never more than some thousands.
"""

from collections import Counter
from dataclasses import dataclass

from oku_core.accounting.lease_state import LeaseState
from oku_core.results.lease_span import LeaseSpan

MOST_BANDS = 5000
_ROWS = 250
"""More are not told apart in a picture."""


@dataclass(slots=True)
class Band:
    """Leases of one state that lie together: from the first to the last of them in time and space.

    `closed_at` is None when they are out.
    """

    state: LeaseState
    start: int
    stop: int
    cut_at: float
    closed_at: float | None


class LeaseBands:
    """What became of the leases of a run of so many requests."""

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self._step_s = 0.5
        self.bands: list[Band] = []
        self.counts: Counter[LeaseState] = Counter()
        """How many leases there are of each state."""

    def __len__(self) -> int:
        """How many leases."""
        return self.counts.total()

    @property
    def are_merged(self) -> bool:
        """Whether a band may be several leases."""
        return len(self.bands) < len(self)

    def add(self, lease: LeaseSpan) -> None:
        """One more."""
        self.counts[lease.state] += 1
        self.bands.append(Band(lease.state, lease.start, lease.stop, lease.cut_at, lease.closed_at))
        if len(self.bands) > MOST_BANDS:
            self._merge()
            while len(self.bands) > MOST_BANDS // 2:
                self._step_s *= 2
                self._merge()

    def _merge(self) -> None:
        merged: dict[tuple[LeaseState, int, int], Band] = {}
        for band in self.bands:
            place = band.state, int(band.cut_at // self._step_s), band.start * _ROWS // self._requests
            other = merged.get(place)
            merged[place] = band if other is None else _join(other, band)
        self.bands = list(merged.values())


def _join(band: Band, other: Band) -> Band:
    band.start, band.stop = min(band.start, other.start), max(band.stop, other.stop)
    band.cut_at = min(band.cut_at, other.cut_at)
    if band.closed_at is not None and other.closed_at is not None:
        band.closed_at = max(band.closed_at, other.closed_at)
    return band
