import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.index_ranges import (
    IndexRanges,
    Range,
    RangeSet,
    Room,
    count_packed,
    is_contained,
    is_in_ranges,
    is_packed,
    iter_ranges,
    merge_ranges,
    pack_ranges,
)


@st.composite
def sets_of_ranges(draw: st.DrawFn) -> list[Range]:
    """Draw ranges in rising order, some of which touch."""
    ranges, at = [], draw(st.integers(0, 10**15))
    for _ in range(draw(st.integers(1, 8))):
        start = at + draw(st.integers(0, 5))
        at = start + draw(st.integers(1, 6))
        ranges.append((start, at))
    return ranges


def list_all(ranges: list[Range]) -> list[int]:
    """Every index, one by one."""
    return [index for start, stop in ranges for index in range(start, stop)]


@given(sets_of_ranges(), st.data())
def test_a_cut_has_the_indices_of_its_positions(ranges: list[Range], data: st.DataObject) -> None:
    """It is the ranges between two positions, and none of them is empty."""
    indices, both = list_all(ranges), IndexRanges(ranges)
    first = data.draw(st.integers(0, both.length))
    last = data.draw(st.integers(0, both.length))
    pieces = both.cut(first, last)
    assert list_all(pieces) == indices[first:last]
    assert all(start < stop for start, stop in pieces)


@given(sets_of_ranges())
def test_a_position_is_the_rank_of_its_index(ranges: list[Range]) -> None:
    """Positions and indices lead to each other."""
    indices, both = list_all(ranges), IndexRanges(ranges)
    assert both.length == len(indices)
    assert both.list_indices(range(both.length)) == indices
    assert [both.position_of(index) for index in indices] == list(range(both.length))
    # Each range begins at its offset. So whoever goes through the ranges one by one knows the positions.
    both = IndexRanges(ranges)
    for number, (start, stop) in enumerate(both.ranges):
        assert both.index_at(both.offset(number)) == start
        assert both.find_range(both.offset(number) + stop - start - 1) == number


@pytest.mark.parametrize("ranges", [[(1, 1)], [(2, 1)], [(-1, 1)], [(0, 3), (2, 4)], [(5, 6), (0, 1)]])
def test_ranges_that_overlap_or_are_empty_are_refused(ranges: list[Range]) -> None:
    """An index would have two positions, or none."""
    with pytest.raises(ValueError, match="does not follow on"):
        IndexRanges(ranges)


def test_ranges_are_equal_when_they_have_the_same_indices_in_the_same_pieces() -> None:
    """So are their hashes, and their text names them."""
    ranges = IndexRanges([(0, 5), (7, 9)])
    assert ranges == IndexRanges([[0, 5], [7, 9]])
    assert len({ranges, IndexRanges([(0, 5), (7, 9)])}) == 1
    assert ranges != IndexRanges([(0, 5), (7, 8), (8, 9)])
    assert repr(ranges) == "IndexRanges([(0, 5), (7, 9)])"
    # No ranges have no positions. An empty set can be cut, too.
    assert IndexRanges([]).length == 0
    assert IndexRanges([]).cut(0, 1) == []


POSITIONS = st.lists(st.integers(0, 60), unique=True, max_size=60)


def list_positions(packed: list[int]) -> list[int]:
    """The positions of a packed set, one by one."""
    return [position for start, stop in iter_ranges(packed) for position in range(start, stop)]


@given(POSITIONS, st.integers(0, 5))
def test_without_room_only_what_touches_a_range_is_taken(positions: list[int], ranges: int) -> None:
    """A set never has more ranges than there is room for, and says what it has not taken."""
    positions_set = RangeSet(Room(ranges))
    taken = [position for position in positions if positions_set.add(position)]
    assert list_positions(positions_set.pack()) == sorted(taken)
    assert len(positions_set) <= ranges


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=9), st.integers(0, 5))
def test_a_range_is_added_behind_all_as_its_positions_are(spans: list[tuple[int, int]], ranges: int) -> None:
    """Whether it touches the last one or not, as far as there is room."""
    at_once, one_by_one, at = RangeSet(Room(ranges)), RangeSet(Room(ranges)), 0
    for gap, length in spans:
        at += gap
        taken = [one_by_one.add(position) for position in range(at, at + length)]
        assert at_once.append(at, at + length) == all(taken)
        at += length
    assert at_once.pack() == one_by_one.pack()


@given(POSITIONS)
def test_a_set_has_what_was_added_in_as_few_ranges_as_there_can_be(positions: list[int]) -> None:
    """The order in which positions come makes no difference."""
    room = Room(100)
    positions_set = RangeSet(room)
    assert all(positions_set.add(position) for position in positions)
    packed = positions_set.pack()
    assert list_positions(packed) == sorted(positions)
    assert count_packed(packed) == len(positions)
    assert is_packed(packed)
    assert len(positions_set) == len(packed) // 2 == 100 - room.left
    # A position is found in ranges. It is in one of them, or in none.
    ranges = list(merge_ranges((position, position + 1) for position in sorted(positions)))
    assert [position for position in range(70) if is_in_ranges(position, ranges)] == sorted(positions)
    # Each state of a set is contained in the next.
    positions_set = RangeSet(Room(4))
    before: list[int] = []
    for position in positions:
        positions_set.add(position)
        after = positions_set.pack()
        assert is_contained(before, after)
        before = after


@given(POSITIONS, POSITIONS)
def test_a_set_is_contained_if_each_of_its_positions_is(inner: list[int], outer: list[int]) -> None:
    """It is the same as with sets of single positions."""
    packed = [pack_ranges(merge_ranges((p, p + 1) for p in sorted(each))) for each in (inner, outer)]
    assert is_contained(*packed) == (set(inner) <= set(outer))


def test_sets_share_their_room() -> None:
    """Two outcomes of one lease have one bound."""
    room = Room(1)
    assert RangeSet(room).add(5)
    assert not RangeSet(room).add(9)
    # What is no set is not taken for one.
    for packed in ([1], [-1, 1], [0, 0], [0, 1, 0, 1], [0, -1]):
        assert not is_packed(packed)
    assert is_packed([])
    assert is_packed([0, 1, 1, 1])
