import pytest
from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.index_ranges import IndexRanges, Range


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


@given(sets_of_ranges())
def test_a_position_is_the_rank_of_its_index(ranges: list[Range]) -> None:
    """Positions and indices lead to each other."""
    indices, both = list_all(ranges), IndexRanges(ranges)
    assert both.length == len(indices)
    assert both.list_indices(range(both.length)) == indices
    assert [both.position_of(index) for index in indices] == list(range(both.length))


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
def test_each_range_begins_at_its_offset(ranges: list[Range]) -> None:
    """So whoever goes through the ranges one by one knows the positions."""
    both = IndexRanges(ranges)
    for number, (start, stop) in enumerate(both.ranges):
        assert both.index_at(both.offset(number)) == start
        assert both.find_range(both.offset(number) + stop - start - 1) == number


def test_no_ranges_have_no_positions() -> None:
    """An empty set can be cut, too."""
    assert IndexRanges([]).length == 0
    assert IndexRanges([]).cut(0, 1) == []


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
