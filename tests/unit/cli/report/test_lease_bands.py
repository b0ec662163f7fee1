from collections import Counter

import pytest
from tests.unit.cli.report.conftest import START, band_leases, make_lease

from oku_cli.report.lease_bands import MOST_BANDS, LeaseBands
from oku_core.accounting.lease_state import LeaseState


def test_few_leases_are_kept_as_they_are() -> None:
    """Each is a band as long as they can be told apart."""
    bands = band_leases([make_lease(i, i + 1, i, i + 2.0) for i in range(100)])
    assert [(band.start, band.stop, band.cut_at) for band in bands.bands] == [
        (i, i + 1, START + i) for i in range(100)
    ]
    assert (len(bands), bands.are_merged) == (100, False)


def test_a_lease_of_several_ranges_has_a_band_for_each() -> None:
    """What lies between them belongs to other leases."""
    bands = band_leases([make_lease(0, 90, 0, 2.0, ranges=[(0, 10), (80, 90)])])
    assert [(band.start, band.stop) for band in bands.bands] == [(0, 10), (80, 90)]
    assert (len(bands), bands.are_merged) == (1, False)


@pytest.mark.parametrize("order", [1, 7])
def test_very_many_leases_are_merged_with_their_neighbours(order: int) -> None:
    """Memory is bounded whatever their number and order, and each lease lies within a band."""
    count, states = 40_000, (LeaseState.CLOSED, LeaseState.CLOSED, LeaseState.EXPIRED)
    bands = LeaseBands(count)
    places = [i * order % count for i in range(count)]
    for i in places:
        bands.add(make_lease(i, i + 1, i / 10, i / 10 + 10, state=states[i % 3]))
        assert len(bands.bands) <= MOST_BANDS
    assert bands.counts == Counter(states[i % 3] for i in places)
    assert bands.are_merged
    assert min(band.start for band in bands.bands) == 0
    assert max(band.stop for band in bands.bands) == count
    # No band is so large that it would distort the chart.
    assert max(band.stop - band.start for band in bands.bands) <= count / 250 + 1
    assert max((band.closed_at or 0) - band.cut_at for band in bands.bands) <= 10 + 16
