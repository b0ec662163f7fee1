from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.interval import (
    ConservationError,
    Lengths,
    Slice,
    SliceState,
    build_partition,
    check_partition,
    check_replacement,
    cut,
    settle,
)

PENDING, LEASED, ACCOUNTED = SliceState


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


@given(data=st.data(), requests=st.integers(1, 60))
def test_a_partition_stays_one_whatever_happens_to_its_slices(data: st.DataObject, requests: int) -> None:
    """Leasing, reporting and expiring in any order keep the first law, by indices as well as by slices."""
    slices = [Slice(0, requests, PENDING)]
    states = [PENDING] * requests
    for _ in range(data.draw(st.integers(0, 25), label="steps")):
        open_places = [place for place, piece in enumerate(slices) if piece.state != ACCOUNTED]
        if not open_places:
            break
        place = data.draw(st.sampled_from(open_places), label="slice")
        start, stop, state = slices[place]
        if state == PENDING:
            size = data.draw(st.integers(1, 20), label="size")
            pieces = cut(slices[place], size)
            states[start : min(start + size, stop)] = [LEASED] * min(size, stop - start)
        else:
            done = data.draw(st.integers(start, stop), label="done")
            unfinished = sorted(
                data.draw(st.sets(st.sampled_from(range(start, done)))) if done > start else []
            )
            pieces = settle(start, stop, done, unfinished)
            states[start:stop] = [
                ACCOUNTED if index < done and index not in unfinished else PENDING
                for index in range(start, stop)
            ]
        slices = build_partition([*slices[:place], *pieces, *slices[place + 1 :]])
        lengths = check_partition(slices, requests)
        assert expand(slices) == states
        assert lengths == Lengths(states.count(PENDING), states.count(LEASED), states.count(ACCOUNTED))


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


def test_leases_that_touch_are_not_joined() -> None:
    """One lease is one slice, because a report of one lease says nothing about another."""
    leases = [Slice(0, 5, LEASED), Slice(5, 9, LEASED)]
    assert build_partition(leases) == leases


def test_slices_that_do_not_touch_are_not_joined() -> None:
    """A gap stays a gap, so that the check of the first law finds it."""
    apart = [Slice(0, 5, PENDING), Slice(6, 9, PENDING)]
    assert build_partition(apart) == apart


def test_a_slice_that_ends_before_it_starts_is_a_breach() -> None:
    """An impossible slice is neither kept nor joined away."""
    with pytest.raises(ConservationError, match=r"^slice \[5, 4\) pending ends before it starts$"):
        build_partition([Slice(0, 5, ACCOUNTED), Slice(5, 4, PENDING)])


@given(start=st.integers(0, 10**15), length=st.integers(1, 10**15), size=st.integers(1, 10**15))
def test_a_lease_is_the_first_indices_of_what_is_pending(start: int, length: int, size: int) -> None:
    """A lease has the size that was asked for, or all that is left; the rest stays pending."""
    lease, *rest = cut(Slice(start, start + length, PENDING), size)
    assert lease == Slice(start, start + min(size, length), LEASED)
    assert rest == ([Slice(start + size, start + length, PENDING)] if size < length else [])


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        (Slice(0, 9, LEASED), 5),
        (Slice(0, 9, ACCOUNTED), 5),
        (Slice(0, 9, PENDING), 0),
        (Slice(0, 9, PENDING), -1),
        (Slice(9, 9, PENDING), 1),
    ],
)
def test_what_nobody_may_take_is_not_leased(piece: Slice, size: int) -> None:
    """Only a pending slice can be cut, and a lease has at least one index."""
    with pytest.raises(ValueError, match=rf"^{size} of \[{piece.start}, 9\) {piece.state} cannot be leased$"):
        cut(piece, size)


def test_a_report_of_the_whole_lease_accounts_for_it() -> None:
    """One slice takes the place of the lease."""
    assert settle(10, 20, 20, []) == [Slice(10, 20, ACCOUNTED)]


def test_a_report_of_nothing_gives_the_lease_back() -> None:
    """If its worker had not begun, the range is as it was before the lease."""
    assert settle(10, 20, 10, []) == [Slice(10, 20, PENDING)]


def test_a_report_of_a_prefix_gives_the_rest_back() -> None:
    """Indices that were never taken or never finished are pending again, and neighbours are joined."""
    assert settle(10, 20, 16, [10, 13, 15]) == [
        Slice(10, 11, PENDING),
        Slice(11, 13, ACCOUNTED),
        Slice(13, 14, PENDING),
        Slice(14, 15, ACCOUNTED),
        Slice(15, 20, PENDING),
    ]


@pytest.mark.parametrize(
    ("done", "unfinished"), [(9, []), (21, []), (15, [9]), (15, [17]), (15, [12, 11]), (15, [12, 12])]
)
def test_a_report_that_does_not_fit_its_lease_is_a_breach(done: int, unfinished: list[int]) -> None:
    """Such a report never becomes slices, not even ones that look right by chance."""
    with pytest.raises(ConservationError):
        settle(10, 20, done, unfinished)


@given(partitions())
def test_the_lengths_of_a_partition_sum_to_the_space(slices: list[Slice]) -> None:
    """Every index is pending, leased or accounted, and only one of them."""
    requests = slices[-1].stop if slices else 0
    lengths = check_partition(slices, requests)
    assert sum(lengths) == requests
    assert lengths.leased == expand(slices).count(LEASED)


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


@pytest.mark.parametrize("requests", [8, 10])
def test_the_slices_end_where_the_space_ends(requests: int) -> None:
    """The error names an index that is missing at the end, or beyond it."""
    with pytest.raises(ConservationError, match=f"^the slices end at 9, the request space at {requests}$"):
        check_partition([Slice(0, 9, PENDING)], requests)


def test_a_breach_names_the_slice() -> None:
    """The error shows its reader where to look."""
    with pytest.raises(ConservationError, match=r"^slice \[4, 9\) leased does not follow on 5$"):
        check_partition([Slice(0, 5, ACCOUNTED), Slice(4, 9, LEASED)], 9)


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
