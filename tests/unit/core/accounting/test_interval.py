from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.index_ranges import IndexRanges
from oku_core.accounting.interval import (
    ConservationError,
    Slice,
    SliceState,
    build_partition,
    check_partition,
    check_replacement,
    release,
    settle,
)

PENDING, LEASED, ACCOUNTED, UNUSED = SliceState


def expand(slices: Sequence[Slice]) -> list[SliceState]:
    """The state of every single index."""
    return [state for start, stop, state in slices for _ in range(start, stop)]


@st.composite
def partitions(draw: st.DrawFn) -> list[Slice]:
    """Partitions of `[0, n)` as a ledger may hold them: no empty slices, no neighbours to be joined."""
    ends = draw(st.lists(st.integers(1, 200), unique=True, max_size=8).map(sorted))
    states = [draw(st.sampled_from(SliceState)) for _ in ends]
    return build_partition(
        Slice(start, stop, state) for start, stop, state in zip([0, *ends], ends, states, strict=False)
    )


@st.composite
def leases(draw: st.DrawFn) -> IndexRanges:
    """The ranges of a lease, which may touch."""
    steps = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 8)), min_size=1, max_size=6))
    ranges, at = [], 0
    for gap, length in steps:
        ranges.append((at + gap, at + gap + length))
        at += gap + length
    return IndexRanges(ranges)


def list_leased(ranges: IndexRanges, end: int) -> list[Slice]:
    """The leased slices of a lease with this end."""
    return [Slice(start, stop, LEASED) for start, stop in ranges.cut(0, end)]


@given(ranges=leases(), data=st.data())
def test_a_lease_that_is_over_becomes_accounted_and_pending(ranges: IndexRanges, data: st.DataObject) -> None:
    """Each of its leased slices is replaced by slices that cover the same, index by index as it was."""
    end = data.draw(st.integers(0, ranges.length), label="end")
    done = data.draw(st.integers(0, end), label="done")
    in_flight = sorted(data.draw(st.sets(st.integers(0, done - 1)))) if done else []
    settled = list(settle(ranges, end, done, in_flight))
    assert [leased for leased, _ in settled] == ranges.cut(0, end)
    pieces = [piece for _, pieces in settled for piece in pieces]
    check_replacement(list_leased(ranges, end), pieces)
    accounted = {index for piece in pieces if piece.state == ACCOUNTED for index in range(*piece[:2])}
    covered = [position for position in range(done) if position not in in_flight]
    assert accounted == set(ranges.list_indices(covered))
    for (start, stop), parts in settled:
        assert build_partition(parts) == parts
        assert (parts[0].start, parts[-1].stop) == (start, stop)


@given(ranges=leases(), data=st.data())
def test_a_lease_that_is_shortened_leaves_a_shorter_one(ranges: IndexRanges, data: st.DataObject) -> None:
    """Its leased slices are then those of the new end, and all others are pending."""
    end = data.draw(st.integers(0, ranges.length), label="end")
    to = data.draw(st.integers(0, ranges.length), label="to")
    slices = {(piece.start, piece.stop): [piece] for piece in list_leased(ranges, end)}
    for leased, pieces in release(ranges, end, to):
        check_replacement(slices[leased], pieces)
        slices[leased] = pieces
    left = [piece for pieces in slices.values() for piece in pieces if piece.state == LEASED]
    assert left == list_leased(ranges, min(end, to))
    assert {piece.state for pieces in slices.values() for piece in pieces} <= {LEASED, PENDING}


@given(partitions())
def test_joining_changes_no_index(slices: list[Slice]) -> None:
    """Slices that are split into single indices, with empty ones in between, are joined as they were."""
    torn = [
        piece
        for start, stop, state in slices
        if state != LEASED
        for index in range(start, stop)
        for piece in (Slice(index, index + 1, state), Slice(index + 1, index + 1, LEASED))
    ]
    assert build_partition(torn) == [piece for piece in slices if piece.state != LEASED]


def test_what_does_not_touch_is_not_joined() -> None:
    """Each leased slice is of one lease, because a checkpoint of one says nothing about another."""
    leases = [Slice(0, 5, LEASED), Slice(5, 9, LEASED)]
    assert build_partition(leases) == leases
    # Slices that do not touch are not joined.
    apart = [Slice(0, 5, PENDING), Slice(6, 9, PENDING)]
    assert build_partition(apart) == apart
    # A slice that ends before it starts is a breach. An impossible slice is neither kept nor joined away.
    with pytest.raises(ConservationError, match=r"^slice \[5, 4\) pending ends before it starts$"):
        build_partition([Slice(0, 5, ACCOUNTED), Slice(5, 4, PENDING)])


def test_a_lease_that_is_over_gives_back_what_it_has_not_done() -> None:
    """One slice takes the place of its one range."""
    assert list(settle(IndexRanges([(10, 20)]), 10, 10, [])) == [((10, 20), [Slice(10, 20, ACCOUNTED)])]
    # A lease that was not begun is given back. The range is as it was before the lease.
    assert list(settle(IndexRanges([(10, 20)]), 10, 0, [])) == [((10, 20), [Slice(10, 20, PENDING)])]
    # What was in flight or not taken is given back.
    ranges = IndexRanges([(10, 16), (30, 34), (40, 50)])
    assert list(settle(ranges, 10, 8, [0, 3, 5, 7])) == [
        (
            (10, 16),
            [
                Slice(10, 11, PENDING),
                Slice(11, 13, ACCOUNTED),
                Slice(13, 14, PENDING),
                Slice(14, 15, ACCOUNTED),
                Slice(15, 16, PENDING),
            ],
        ),
        ((30, 34), [Slice(30, 31, ACCOUNTED), Slice(31, 34, PENDING)]),
    ]


@given(partitions())
def test_the_lengths_of_a_partition_sum_to_the_space(slices: list[Slice]) -> None:
    """Every index is pending, leased, accounted or unused, and only one of them."""
    requests = slices[-1].stop if slices else 0
    lengths = check_partition(slices, requests)
    assert sum(lengths) == requests
    assert lengths.leased == expand(slices).count(LEASED)
    assert lengths.unused == expand(slices).count(UNUSED)


@given(data=st.data(), slices=partitions().filter(bool))
def test_every_breach_of_the_first_law_is_found(data: st.DataObject, slices: list[Slice]) -> None:
    """A missing, duplicated, swapped, moved, emptied or reversed slice does not pass."""
    requests = slices[-1].stop
    place = data.draw(st.sampled_from(range(len(slices))), label="place")
    start, stop, state = slices[place]
    by = data.draw(st.integers(1, 5), label="by")
    wrong = data.draw(
        st.sampled_from(
            [
                [],
                [slices[place], slices[place]],
                [Slice(start + by, stop, state)],
                [Slice(start - by, stop, state)],
                [Slice(start, stop + by, state)],
                [Slice(start, stop - by, state)],
                [Slice(stop, start, state)],
                [Slice(start, start, state), slices[place]],
                [slices[place], Slice(stop, stop, state)],
            ]
        ),
        label="wrong",
    )
    with pytest.raises(ConservationError):
        check_partition([*slices[:place], *wrong, *slices[place + 1 :]], requests)


def test_a_breach_names_the_slice() -> None:
    """The error shows its reader where to look."""
    with pytest.raises(ConservationError, match=r"^slice \[4, 9\) leased does not follow on 5$"):
        check_partition([Slice(0, 5, ACCOUNTED), Slice(4, 9, LEASED)], 9)
    for requests in [8, 10]:
        # The slices end where the space ends.
        with pytest.raises(
            ConservationError, match=f"^the slices end at 9, the request space at {requests}$"
        ):
            check_partition([Slice(0, 9, PENDING)], requests)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_a_change_within_a_partition_leaves_a_partition(lengths: list[int], data: st.DataObject) -> None:
    """This holds if and only if the new slices cover what the old ones covered."""
    edges = list(accumulate(lengths, initial=0))
    before = [Slice(a, b, SliceState.PENDING) for a, b in pairwise(edges)]
    removed = data.draw(st.sets(st.sampled_from(before)))
    added = [
        Slice(index, index + 1, SliceState.ACCOUNTED)
        for piece in removed
        for index in range(piece.start, piece.stop)
    ]
    check_replacement(removed, added)
    after = sorted([*(piece for piece in before if piece not in removed), *added])
    assert check_partition(after, edges[-1]).accounted == len(added)
    if added:
        lost = data.draw(st.sampled_from(added))
        with pytest.raises(ConservationError):
            check_replacement(removed, [piece for piece in added if piece != lost])
        with pytest.raises(ConservationError):
            check_replacement(removed, [*added, lost])
