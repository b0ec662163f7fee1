import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_coordinator.ledger.rules.leases.intake import raise_limits
from oku_coordinator.ledger.storage.lease_records import LeaseRecord
from oku_core.accounting.index_ranges import IndexRanges


def build_lease(name: str, *, done: int = 0, limit: int = 0, end: int = 10) -> LeaseRecord:
    """An open lease."""
    return LeaseRecord(
        id=name, run="r1", ranges=IndexRanges([(0, max(end, limit, 1))]), worker="w1", incarnation="b1",
        cut_at=0.0, limit=limit, end=end, reported_end=end, done=done,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("allowance", "raised"),
    [
        (0, {}),
        (3, {"a": 7}),
        (6, {"a": 10}),
        (8, {"a": 10, "b": 2}),
        (100, {"a": 10, "b": 10, "c": 5}),
    ],
)
def test_the_allowance_is_spent_in_the_order_of_the_feed(allowance: int, raised: dict[str, int]) -> None:
    """A lease gets its share only when the ones before it may be taken to their ends."""
    leases = [build_lease("a", done=4, limit=5), build_lease("b"), build_lease("c", end=5)]
    assert raise_limits(leases, allowance) == raised


def test_what_was_allowed_before_is_spent() -> None:
    """A limit that is further ahead than the allowance stays, and leaves nothing for others."""
    leases = [build_lease("a", done=2, limit=8), build_lease("b")]
    assert raise_limits(leases, 4) == {}
    assert raise_limits(leases, 9) == {"a": 10, "b": 1}


def test_a_limit_beyond_the_end_of_its_lease_is_not_spent_there() -> None:
    """A lease that was shortened can be taken to its end only."""
    leases = [build_lease("a", done=2, limit=8, end=4), build_lease("b")]
    assert raise_limits(leases, 5) == {"b": 3}


LEASES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(sorted).map(
        lambda figures: build_lease(f"{figures}", done=figures[0], limit=figures[1], end=figures[2])
    ),
    max_size=6, unique_by=lambda lease: lease.id,
)  # fmt: skip


@given(LEASES, st.integers(0, 60))
def test_no_limit_falls_and_no_more_is_allowed_than_must(leases: list[LeaseRecord], allowance: int) -> None:
    """What a worker may take is its allowance, unless it was allowed more before or has less."""
    raised = raise_limits(leases, allowance)
    allowed = 0
    for lease in leases:
        limit = raised.get(lease.id, lease.limit)
        assert lease.limit <= limit <= lease.end
        allowed += limit - lease.done
    before = sum(lease.limit - lease.done for lease in leases)
    untaken = sum(lease.end - lease.done for lease in leases)
    assert min(untaken, allowance) <= allowed <= max(before, min(untaken, allowance + before))
