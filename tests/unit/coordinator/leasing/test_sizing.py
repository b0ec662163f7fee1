import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_coordinator.leasing.sizing import LEASE_S, MAX_SIZE, size_lease
from oku_core.spec.spec import Spec

RATES = st.none() | st.floats(0.01, 1e6)


def test_a_lease_lasts_ten_seconds_at_its_workers_rate() -> None:
    """This holds while there is plenty of work."""
    assert size_lease(Spec(), pending=10**9, workers=4, rate_rps=1234.5) == 12_345


def test_a_first_lease_is_a_few_windows() -> None:
    """No rate is known yet."""
    assert size_lease(Spec(concurrency=1000), pending=10**9, workers=4, rate_rps=None) == 8000


@given(
    st.integers(1, 10**15), st.integers(1, 10**4), RATES, st.none() | st.integers(1, 10**9),
    st.integers(1, 10**6),
)  # fmt: skip
def test_a_lease_has_at_least_one_request_and_at_most_what_is_pending(
    pending: int, workers: int, rate_rps: float | None, range_size: int | None, concurrency: int
) -> None:
    """It never has more than the limit, whatever the spec and the rate are."""
    spec = Spec(range_size=range_size, concurrency=concurrency)
    size = size_lease(spec, pending=pending, workers=workers, rate_rps=rate_rps)
    assert 1 <= size <= pending
    assert size <= (range_size or MAX_SIZE)


@pytest.mark.parametrize("rate_rps", [None, 1.0, 1e6])
def test_a_size_in_the_spec_overrides_the_rule(rate_rps: float | None) -> None:
    """Only the last lease is smaller."""
    spec = Spec(range_size=5_000_000)
    assert size_lease(spec, pending=10**9, workers=10, rate_rps=rate_rps) == 5_000_000
    assert size_lease(spec, pending=3, workers=10, rate_rps=rate_rps) == 3


@given(st.integers(1, 10**6), st.integers(1, 100), st.floats(1, 1e5))
def test_leases_shrink_near_the_end_so_that_all_end_together(
    pending: int, workers: int, rate_rps: float
) -> None:
    """None is larger than half of what would fall to its worker, but for what keeps the window full."""
    size = size_lease(Spec(concurrency=1), pending=pending, workers=workers, rate_rps=rate_rps)
    assert size <= max(50, math.ceil(rate_rps / 2), math.ceil(pending / (2 * workers)))
    assert size <= math.ceil(LEASE_S * rate_rps) or size <= 50


@given(st.integers(1, 10**6), st.integers(1, 100), RATES, st.integers(1, 10**5))
def test_a_lease_is_never_below_two_windows(
    pending: int, workers: int, rate_rps: float | None, concurrency: int
) -> None:
    """It has to fill the window while the slowest answer of the lease before it is awaited."""
    size = size_lease(Spec(concurrency=concurrency), pending=pending, workers=workers, rate_rps=rate_rps)
    assert size >= min(pending, 2 * concurrency)


@given(st.integers(1, 10**6), st.integers(1, 100), RATES)
def test_a_run_needs_few_leases(requests: int, workers: int, rate_rps: float | None) -> None:
    """The shrinking ends: half of what is left goes out in as many leases as there are workers."""
    pending, leases = requests, 0
    while pending:
        pending -= size_lease(Spec(), pending=pending, workers=workers, rate_rps=rate_rps)
        leases += 1
    steady = requests / min(MAX_SIZE, max(50, LEASE_S * rate_rps if rate_rps else 800))
    assert leases <= steady + 2 * workers * (math.log2(requests) + 1) + 1
