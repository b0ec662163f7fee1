import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.index_ranges import IndexRanges
from oku_core.messaging.lease import Lease, build_lease_id, read_lease_number


def test_a_lease_knows_its_ranges() -> None:
    """They may be many, and lie anywhere."""
    lease = Lease(id="l1", run="r1", ranges=[(3, 5), (10**15, 10**15 + 1)], limit=3)
    assert lease.build_ranges().ranges == IndexRanges([(3, 5), (10**15, 10**15 + 1)]).ranges
    for ranges in [[(5, 5)], [(5, 3)], [(3, 9), (5, 12)], [(9, 12), (3, 5)], [(-1, 3)]]:
        # Ranges that are no set are refused. No worker could tell which index a position means.
        with pytest.raises(ValueError, match="is empty or does not follow on"):
            Lease(id="l1", run="r1", ranges=ranges, limit=1).build_ranges()


@given(st.integers(0, 10**12))
def test_the_number_of_a_lease_is_read_from_its_id(number: int) -> None:
    """Orders say up to which number leases of a run are meant."""
    assert read_lease_number(build_lease_id("20260102-r1.5", number)) == number


@pytest.mark.parametrize("lease", ["", "r1", "r1.x.ab", "r1.-1.ab"])
def test_an_id_from_somebody_else_has_no_number(lease: str) -> None:
    """Such a lease is meant by no order."""
    assert read_lease_number(lease) == 0
