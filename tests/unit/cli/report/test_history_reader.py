from collections import Counter
from typing import Any

import pytest
from tests.unit.cli.report.conftest import START, band_leases, make_lease

from oku_cli.report.history_reader import MOST_BANDS, LeaseBands, read_load
from oku_core.accounting.lease_state import LeaseState
from oku_core.spec.parser import Source, build_mapping, parse_spec


@pytest.mark.parametrize(
    "load",
    [
        {"rate": "100/s", "duration": "10s", "arrivals": "poisson", "seed": 7},
        {"stages": ["up=1m:0..50/s", "30s:0/s"], "warm-up": "10s", "late": "send", "concurrency": 20},
        {"stages": ["1m:0..50"]},
        {"duration": "10s", "url": "http://h/"},
        {"requests": 5, "max-rate": "2/s", "url": "http://h/", "header": ["A: ***"]},
    ],
)
def test_the_load_of_a_spec_is_read_back(load: dict[str, Any]) -> None:
    """What has nothing to do with it, such as a masked header, does not matter."""
    spec = parse_spec(Source(None, load))
    read = read_load(build_mapping(spec))
    assert read is not None
    for name in ("requests", "rate", "duration_s", "stages", "arrivals", "late", "warm_up_s", "max_rate"):
        assert getattr(read, name) == getattr(spec, name)
    assert read.find_window(3) == spec.find_window(3)


def test_a_load_that_is_not_understood_is_none() -> None:
    """A newer coordinator may know shapes that this version does not."""
    assert read_load({"stages": ["sine=1m:0..50/s~10s"]}) is None


def test_few_leases_are_kept_as_they_are() -> None:
    """Each is a band as long as they can be told apart."""
    bands = band_leases([make_lease(i, i + 1, i, i + 2.0) for i in range(100)])
    assert [(band.start, band.stop, band.cut_at) for band in bands.bands] == [
        (i, i + 1, START + i) for i in range(100)
    ]
    assert (len(bands), bands.are_merged) == (100, False)
    # A lease of several ranges has a band for each. What lies between them belongs to other leases.
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
