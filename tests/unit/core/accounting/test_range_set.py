"""Sets of positions as ranges: they merge as they grow, and a packed set means what it was made of."""

from hypothesis import given
from hypothesis import strategies as st

from oku_core.accounting.range_set import (
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

POSITIONS = st.lists(st.integers(0, 60), unique=True, max_size=60)


def list_positions(packed: list[int]) -> list[int]:
    """The positions of a packed set, one by one."""
    return [position for start, stop in iter_ranges(packed) for position in range(start, stop)]


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
def test_a_position_is_found_in_ranges(positions: list[int]) -> None:
    """It is in one of them, or in none."""
    ranges = list(merge_ranges((position, position + 1) for position in sorted(positions)))
    assert [position for position in range(70) if is_in_ranges(position, ranges)] == sorted(positions)


@given(POSITIONS)
def test_each_state_of_a_set_is_contained_in_the_next(positions: list[int]) -> None:
    """A checkpoint contains its predecessor, also when there is no room for more."""
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


def test_what_is_no_set_is_not_taken_for_one() -> None:
    """A range that is empty, begins before 0 or touches the one before it is not how a set is packed."""
    for packed in ([1], [-1, 1], [0, 0], [0, 1, 0, 1], [0, -1]):
        assert not is_packed(packed)
    assert is_packed([])
    assert is_packed([0, 1, 1, 1])
